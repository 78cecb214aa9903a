/// For which jobs there is a slot now.
struct FreeSlots {
  /// Maximum number of parallel transfers from one host.
  let perHost: Int
  /// The number of running transfers by host.
  let running: [String: Int]
  /// The proxies that no job may use now: see ``ProxyWait``.
  var closed: Set<String> = []

  /// Whether the host of the job has a free slot, and its proxy may be used.
  func areFree(for peek: Peek) -> Bool {
    guard let host = peek.host else { return true }
    return load(of: host) < perHost && !waitsForProxy(peek)
  }

  /// Whether the job waits for its proxy.
  func waitsForProxy(_ peek: Peek) -> Bool { peek.proxy.map { closed.contains($0) } ?? false }

  /// The same with another limit.
  func within(perHost: Int) -> FreeSlots { FreeSlots(perHost: perHost, running: running, closed: closed) }

  func load(of host: String) -> Int { running[host] ?? 0 }
}
