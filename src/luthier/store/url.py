"""Reading what names a store."""

import re


def without_password(url: str) -> str:
    """The URL as it may be shown, whatever is wrong with it."""
    scheme, mark, rest = url.rpartition("://") if url.count("://") == 1 else url.partition("://")
    if not mark:
        scheme, rest = "", url
    credentials, at, place = rest.rpartition("@")
    if ":" in credentials:
        credentials = credentials.partition(":")[0] + ":***"
    return re.sub(r"(password=)[^&]*", r"\1***", f"{scheme}{mark}{credentials}{at}{place}")
