import inspect

import cc_session


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    for name in cc_session.__all__:
        value = getattr(cc_session, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name
    assert len({*cc_session.__all__}) == len(cc_session.__all__)
