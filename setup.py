"""Build the native modules: every `src/pycobre/_native/NAME.c` becomes `pycobre._native.NAME`.

Each is optional: where there is no C compiler, or the platform lacks what a module needs, the install goes
on without it and `pycobre doctor` says which features are missing. The limited API (abi3) makes one wheel
serve every Python from 3.11 on. Floating point stays strict: the bits of a result are part of the contract.
"""

from pathlib import Path

from setuptools import Extension, setup

NATIVE = Path("src/pycobre/_native")

setup(
    ext_modules=[
        Extension(
            f"pycobre._native.{source.stem}",
            [source.as_posix()],
            depends=[header.as_posix() for header in sorted(NATIVE.glob("*.h"))],
            define_macros=[("Py_LIMITED_API", "0x030B0000"), ("_GNU_SOURCE", "1")],
            py_limited_api=True,
            extra_compile_args=["-std=c11", "-O3", "-ffp-contract=off", "-Wall", "-Wextra"],
            libraries=["dl", "rt", "pthread"],
            optional=True,
        )
        for source in sorted(NATIVE.glob("*.c"))
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
