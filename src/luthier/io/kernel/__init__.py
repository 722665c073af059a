"""I/O kernels: what is left of a C program when only its I/O and what that needs are kept."""

from luthier.io.kernel.discovery import Discovery, KernelFile, discover_io
from luthier.io.kernel.options import KernelOptions
from luthier.io.kernel.sources import SourceFile, compile_commands, source_file

__all__ = ["Discovery", "KernelFile", "KernelOptions", "SourceFile", "compile_commands", "discover_io", "source_file"]
