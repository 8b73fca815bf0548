"""Compiles Kiln in another folder than that of the project.

Crates of registries are the same in every folder: they are taken from `target/release`. The crates of Kiln are compiled again,
without optimization, which takes a quarter of the time; other tests try optimized code.
"""
import shutil
import tomllib

from .pypi import TARGET

KEPT = ['deps', 'build', '.fingerprint']


def take_dependencies(folder):
    """Copies what `cargo build --release` has compiled to a new target folder."""
    if not folder.exists() and (TARGET / 'release').exists():
        for part in KEPT:
            shutil.copytree(TARGET / 'release' / part, folder / 'release' / part, symlinks=True)
    folder.mkdir(parents=True, exist_ok=True)


def settings(root):
    """The settings of cargo for such a build, in TOML: the profile of the project in `root`, so that its dependencies fit."""
    profile = tomllib.loads((root / 'Cargo.toml').read_text())['profile']['release']
    packages = {name: table for name, table in profile.pop('package').items() if not name.startswith('kiln')}
    for crate in sorted((root / 'crates').iterdir()):
        name = 'kiln' if crate.name == 'kiln' else f'kiln-{crate.name}'
        packages[name] = {'opt-level': 0, 'codegen-units': 16}
    tables = {'profile.release': profile, **{f'profile.release.package.{name}': table for name, table in packages.items()}}
    return '\n'.join(f'[{name}]\n' + ''.join(f'{key} = {word(value)}\n' for key, value in table.items())
                     for name, table in tables.items())


def word(value):
    return f'"{value}"' if isinstance(value, str) else str(value).lower()
