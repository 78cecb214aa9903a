internal import Spool

/// What a person hears about proxies, once for each outage.
extension JobEnvironment {
  func tellProxyFailed(_ proxy: String, _ reason: String) {
    log(Event("proxy-failed", .warning, Fields().with("proxy", proxy).with("reason", reason)))
  }

  func tellProxyBack(_ proxy: String) { log(Event("proxy-back", .warning, Fields().with("proxy", proxy))) }
}
