/// The proxies that cannot be reached, or refuse to serve us. Each job that needs one would fail with the same error,
/// so only one job at a time tries, after a pause that grows. Pure.
///
/// Times are milliseconds of the loop's clock.
struct ProxyWait {
  private struct FailingProxy {
    let reason: String
    var pause = ProxyWait.shortestPause
    /// When a job may try the proxy.
    var until: Int64
    /// The job that tries it.
    var probe: UInt64?
  }

  static let shortestPause: Int64 = 15_000
  static let longestPause: Int64 = 300_000

  /// By the proxy's `HOST:PORT`.
  private var failing: [String: FailingProxy] = [:]

  /// The proxies that no job may use now.
  func closed(at now: Int64) -> Set<String> {
    Set(failing.lazy.filter { $0.value.probe != nil || now < $0.value.until }.map(\.key))
  }

  /// What is wrong with the proxies that fail.
  var reason: String? {
    failing.isEmpty ? nil : failing.sorted { $0.key < $1.key }.map(\.value.reason).joined(separator: "; ")
  }

  mutating func started(_ id: UInt64, proxy: String?) {
    if let proxy { failing[proxy]?.probe = id }
  }

  /// Notes that a job failed because of its proxy. Jobs that had started before the first of them failed are no probes.
  /// - Returns: whether the proxy had not failed before.
  mutating func failed(_ id: UInt64, proxy: String, _ reason: String, at now: Int64) -> Bool {
    guard let known = failing[proxy] else {
      failing[proxy] = FailingProxy(reason: reason, until: now + Self.shortestPause)
      return true
    }
    if known.probe == id {
      let pause = min(2 * known.pause, Self.longestPause)
      failing[proxy] = FailingProxy(reason: reason, pause: pause, until: now + pause)
    }
    return false
  }

  /// Notes that a job got past its proxy. Only a probe shows that the proxy serves us again; others may have been
  /// served before it failed.
  /// - Returns: the proxy, if it had failed.
  mutating func passed(_ id: UInt64) -> String? {
    guard let proxy = proxy(triedBy: id) else { return nil }
    failing[proxy] = nil
    return proxy
  }

  /// A probe that has shown nothing leaves its turn to the next job.
  mutating func ended(_ id: UInt64) {
    if let proxy = proxy(triedBy: id) { failing[proxy]?.probe = nil }
  }

  /// Lets a job try each proxy at once, because the network has changed.
  mutating func tryAtOnce(at now: Int64) {
    for proxy in failing.keys { failing[proxy]?.until = now }
  }

  private func proxy(triedBy id: UInt64) -> String? { failing.first { $0.value.probe == id }?.key }
}
