"""I/O kernels: what is left of a C program when only its I/O and what that needs are kept."""

from luthier.iokernel.discovery import Discovery, KernelFile, discover_io
from luthier.iokernel.options import Options
from luthier.iokernel.sources import SourceFile, compile_commands, source_file

__all__ = ["Discovery", "KernelFile", "Options", "SourceFile", "compile_commands", "discover_io", "source_file"]
