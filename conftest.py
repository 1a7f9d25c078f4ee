"""For all tests: a busy machine is no failure, so hypothesis times neither examples nor how they are made."""

from hypothesis import HealthCheck, settings

settings.register_profile("workspace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("workspace")
