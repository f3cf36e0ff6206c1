"""A target: one checked place where captures run, from the config file.

Names that end in an argv are checked here against patterns that leave no room for options
(``-oProxyCommand=…``) or shell text; everything else travels quoted on stdin.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from nsys_tui.config import (
    Config,
    ContainerConfig,
    KubernetesConfig,
    SlurmConfig,
    TargetConfig,
)
from nsys_tui.errors import ConfigError, UsageError

LOCAL: Final = "local"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_HOST: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:%@\[\]-]{0,254}")
_OBJECT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,254}")
_ENV: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME: Final = re.compile(r"TOKEN|SECRET|PASSW|KEY|CREDENTIAL", re.IGNORECASE)


@dataclass(frozen=True)
class Target:
    """A checked target; ``settings`` is what the file says about it."""

    name: str
    settings: TargetConfig = field(default_factory=TargetConfig)

    @property
    def remote(self) -> bool:
        """Whether reports have to be fetched: another machine, a container or a pod."""
        return bool(self.settings.host) or self.settings.launcher in ("docker", "podman", "kubectl")

    @property
    def slurm(self) -> bool:
        """Whether Slurm starts the program."""
        return self.settings.launcher in ("srun", "sbatch")

    @property
    def jobs_dir(self) -> str:
        """The folder of all jobs there; on this machine it follows the platform's state folder."""
        chosen = self.settings.jobs_dir
        if self.remote or chosen != TargetConfig().jobs_dir:
            return chosen
        from platformdirs import user_state_path

        return str(user_state_path("nsys-tui", appauthor=False) / "jobs")

    def describe(self) -> str:
        """Where that is, in a few words: ``gpu-box, podman trainer``."""
        settings = self.settings
        place = settings.host or "this machine"
        inside = {
            "docker": settings.container.name,
            "podman": settings.container.name,
            "kubectl": settings.kubernetes.pod,
        }.get(settings.launcher, "")
        if settings.launcher == "none":
            return place
        return f"{place}, {settings.launcher} {inside}".rstrip()

    def snapshot(self) -> dict[str, Any]:
        """The target as plain data for the record; values of ``env`` stay out of it."""
        plain = asdict_plain(self.settings)
        plain["env"] = sorted(self.settings.env)
        return {"name": self.name, **plain}


def asdict_plain(settings: TargetConfig) -> dict[str, Any]:
    """A target's settings as JSON-ready data."""
    plain: dict[str, Any] = {}
    for key, value in vars(settings).items():
        if isinstance(value, SlurmConfig | ContainerConfig | KubernetesConfig):
            plain[key] = {
                name: list(v) if isinstance(v, tuple) else v for name, v in asdict(value).items()
            }
        elif isinstance(value, Mapping):
            plain[key] = {name: list(v) if isinstance(v, tuple) else v for name, v in value.items()}
        else:
            plain[key] = list(value) if isinstance(value, tuple) else value
    return plain


def from_snapshot(snapshot: Mapping[str, Any], env: Mapping[str, str] | None = None) -> Target:
    """A target as a record remembers it; values of ``env`` come from the present config."""
    values = {key: value for key, value in snapshot.items() if key != "name"}
    values["env"] = dict(env or {})
    settings = TargetConfig(
        **{
            **values,
            "command": tuple(values.get("command", ())),
            "env_from": tuple(values.get("env_from", ())),
            "slurm": SlurmConfig(tuple(values.get("slurm", {}).get("args", ()))),
            "container": ContainerConfig(**values.get("container", {})),
            "kubernetes": KubernetesConfig(**values.get("kubernetes", {})),
        }
    )
    return checked(str(snapshot["name"]), settings, "record")


def find_target(config: Config, name: str = "") -> Target:
    """The target of that name, or the default one.

    Raises:
        UsageError: there is none; the message has a near match.
        ConfigError: its settings are not usable.
    """
    name = name or config.capture.default_target
    settings = config.targets.get(name)
    if settings is not None:
        return checked(name, settings, str(config.path))
    if name == LOCAL:
        return Target(LOCAL)
    near = difflib.get_close_matches(name, [*config.targets, LOCAL], 1)
    raise UsageError(
        f"no target is called {name!r}",
        f"targets are sections [targets.NAME] in {config.path}",
        f"did you mean {near[0]}?" if near else "nsys-tui targets edit adds one",
    )


def all_targets(config: Config) -> list[Target]:
    """All targets, this machine first, unless the file has a ``local`` of its own.

    Raises:
        ConfigError: the settings of one are not usable.
    """
    targets, faults = usable_targets(config)
    if faults:
        raise faults[0]
    return targets


def usable_targets(config: Config) -> tuple[list[Target], list[ConfigError]]:
    """The targets whose settings are usable, and what is wrong with the others."""
    targets, faults = [], []
    for name in dict.fromkeys([LOCAL, *config.targets]):
        try:
            targets.append(find_target(config, name))
        except ConfigError as fault:
            faults.append(fault)
    return targets, faults


def checked(name: str, settings: TargetConfig, where: str) -> Target:
    """Checks every name that will stand in an argv.

    Raises:
        ConfigError: a name could be taken for an option or for shell text, or a launcher lacks
            what it needs; file and key are named.
    """

    def check(key: str, value: str, pattern: re.Pattern[str]) -> None:
        if value and not pattern.fullmatch(value):
            raise ConfigError(
                f"{where}: targets.{name}.{key}: {value!r} cannot be used as a name",
                "it holds characters that could be taken for an option or a command",
            )

    check("name", name, _NAME)
    check("host", settings.host, _HOST)
    check("container.name", settings.container.name, _OBJECT)
    check("container.user", settings.container.user, _OBJECT)
    for key in ("context", "namespace", "pod", "container"):
        check(f"kubernetes.{key}", getattr(settings.kubernetes, key), _OBJECT)
    for key in (*settings.env, *settings.env_from):
        check_env_name(key, f"{where}: targets.{name}")
    if settings.launcher in ("docker", "podman") and not settings.container.name:
        raise ConfigError(f"{where}: targets.{name}.container.name is missing")
    if settings.launcher == "kubectl" and not settings.kubernetes.pod:
        raise ConfigError(f"{where}: targets.{name}.kubernetes.pod is missing")
    return Target(name, settings)


def check_host(host: str) -> str:
    """Refuses host names that ssh would take for an option.

    Raises:
        UsageError: the name holds what no host name needs.
    """
    if not _HOST.fullmatch(host):
        raise UsageError(
            f"{host!r} is no host name", "it could be taken for an option or a command",
            "give the name that `ssh NAME` understands",
        )  # fmt: skip
    return host


def check_env_name(name: str, where: str) -> str:
    """Refuses names that no shell can assign to.

    Raises:
        ConfigError: the name is empty or holds other than letters, digits and underscores.
    """
    if not _ENV.fullmatch(name):
        raise ConfigError(f"{where}: {name!r} is no name of an environment variable")
    return name


def looks_secret(name: str) -> bool:
    """Whether an environment variable's name says that its value is a secret."""
    return bool(_SECRET_NAME.search(name))
