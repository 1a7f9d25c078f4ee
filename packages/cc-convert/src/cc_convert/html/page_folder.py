"""The folder beside a report in HTML, for the pages that do not fit into the first one."""

import os
import re
import shutil
from types import TracebackType
from typing import Self, TextIO
from urllib.parse import quote

__all__ = ["PageFolder"]

_PAGE = re.compile(r"\d+\.html")


class PageFolder:
    """Folder `report-pages` for `report.html`, which only this user can read. It exists only if there are more pages.

    If the report fails, the pages of an earlier report stay.

    Args:
        path: The first page.
        force: True if an earlier report's pages may be replaced.

    Raises:
        FileExistsError: There are such pages and no `force`, or other files are beside them.
    """

    def __init__(self, path: str, *, force: bool) -> None:
        self.path: str = f"{os.path.splitext(path)[0]}-pages"
        self.folder_link: str = quote(os.path.basename(self.path))
        """The folder, as the first page links to it."""
        self.first_link: str = f"../{quote(os.path.basename(path))}"
        """The first page, as the others link to it."""
        self.count: int = 0
        """Number of pages."""
        self._temporary = f"{self.path}.{os.getpid()}"
        self._file: TextIO | None = None
        if os.path.lexists(self.path):
            if not force:
                raise FileExistsError(f"{self.path} exists; --force overwrites it")
            if not os.path.isdir(self.path) or not all(map(_PAGE.fullmatch, os.listdir(self.path))):
                raise FileExistsError(
                    f"{self.path} has other files than a report's pages; move it, or use another name"
                )

    def open(self, number: int) -> TextIO:
        """Create a page, from number 2 on, and close the one before."""
        self._close()
        if not self.count:
            os.mkdir(self._temporary, 0o700)
        self.count += 1
        handle = os.open(os.path.join(self._temporary, f"{number}.html"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = open(handle, "w", encoding="utf-8", newline="")
        return self._file

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()
        if error is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            return
        if os.path.isdir(self.path):
            shutil.rmtree(self.path)
        if self.count:
            os.rename(self._temporary, self.path)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
