internal import Spool

/// What an attempt showed about this machine's connection to servers.
enum Connectivity: Equatable, Sendable {
  case unknown
  /// A server answered, or could be asked.
  case open
  case noNetwork
  /// The proxy cannot be reached, or refuses to serve us: its `HOST:PORT`, and what happened.
  case noProxy(String, reason: String)

  init(_ failure: Failure) {
    switch failure.code {
    case .noNetwork: self = .noNetwork
    case .proxy: self = failure.proxy.map { .noProxy($0, reason: failure.reason) } ?? .unknown
    case let code: self = [.server, .resource].contains(code.blame) ? .open : .unknown
    }
  }

  /// Whether the job fails for as long as this does not change.
  var isBarred: Bool {
    switch self {
    case .noNetwork, .noProxy: true
    case .unknown, .open: false
    }
  }
}
