"""The charging system, seen with one token."""

from clients.ocs.link import OcsLink
from clients.ocs.messages import MessageCalls
from clients.ocs.packages import PackageCalls
from clients.ocs.reseller import ResellerCalls
from clients.ocs.settings import OcsSettings
from clients.ocs.statistics import StatisticsCalls
from clients.ocs.subscriber import SubscriberCalls
from clients.ocs.tariffs import TariffCalls
from clients.ocs.templates import TemplateCalls
from clients.ocs.zones import ZoneCalls


class Ocs:
    """Every method of the wire, by area."""

    def __init__(self, link: OcsLink, settings: OcsSettings) -> None:
        self.link = link
        self.reseller = ResellerCalls(link)
        self.subscriber = SubscriberCalls(link)
        self.packages = PackageCalls(link, settings)
        self.templates = TemplateCalls(link)
        self.tariffs = TariffCalls(link)
        self.statistics = StatisticsCalls(link)
        self.messages = MessageCalls(link)
        self.zones = ZoneCalls(link, settings)
