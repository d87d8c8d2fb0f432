"""The data and the days that a package on a line is set to, in place of those that its template made it with."""

from datetime import timedelta

from clients.ocs.client import Ocs
from clients.ocs.packages import Package
from operations.upstream.lines import package_days, package_end, package_start
from storage.package_adaptations import PackageTerms

TERMS_COMMENT = "As it was sold"
"""What the package's history at the charging system says of the change."""


def has_terms(package: Package, terms: PackageTerms) -> bool:
    """Whether the package holds this data and runs these days. Raises OcsError where its dates cannot be read."""
    return has_data(package, terms) and has_days(package, terms)


def has_data(package: Package, terms: PackageTerms) -> bool:
    return package.get("pckdatabyte") == terms.data_bytes


def has_days(package: Package, terms: PackageTerms) -> bool:
    """By its dates where it has some, else by the days that it will run from its first use."""
    start, end = package_start(package), package_end(package)
    if start is None or end is None:
        return package_days(package) == terms.days
    return abs(end - start - timedelta(days=terms.days)) < timedelta(hours=1)


async def set_package_terms(ocs: Ocs, package_id: int, terms: PackageTerms, seen: Package | None = None) -> None:
    """Sets what the package, as it was `seen`, lacks; all of it where it was not looked at. Raises OcsError. Waits for the network.

    Both changes name the value and not the difference, so that one whose answer was lost does no harm when it is sent again.
    """
    if seen is None or not has_data(seen, terms):
        await ocs.packages.modify_limits(package_id, {"dataByte": terms.data_bytes}, comment=TERMS_COMMENT)
    if seen is None or not has_days(seen, terms):
        await ocs.packages.modify_exp_date(package_id, validity_days=terms.days)
