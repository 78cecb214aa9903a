internal import Spool
internal import Transfer

/// How one mirror is asked, and whether it is asked again: every "again?" of a fetch. Pure: it is told how each
/// request ended, and says what to do.
struct FetchPolicy {
  /// How the next request is put.
  struct Manner: Equatable {
    /// Connections that share the rest once the first answer allows it.
    var connections: Int
    /// For the whole, though there is data.
    var isWhole = false
    /// With the data's validator, where it has one.
    var isConditional = true
    var keepsToHTTP1 = false
    /// Once, on a new connection.
    var isOnFreshConnection = false
    var family = FetchRequest.AddressFamily.any
  }

  /// How a request ended.
  enum Outcome {
    /// The head's verdict; no byte of the body was taken.
    case startOver(String), useless(String), askUnbounded(String), askHTTP1(String)
    /// The body ended by its own framing, and more of the file is to come.
    case ended
    case failed(Failure, Circumstances)
  }

  /// What a request that failed had been like, and so what else may be tried.
  struct Circumstances: Equatable {
    /// It carried an `If-Range`.
    var wasConditional = false
    var wasMultiplexed = false
    /// That of the connection; nil where none stood, or where the URL names the address.
    var family: FetchRequest.AddressFamily?
  }

  enum Action {
    /// Ask once more, in the ``manner`` that is set now, and log this.
    case again(Outcome.Log?)
    case fail(Failure)
  }

  /// How far the data is, after a request.
  struct Progress: Equatable {
    var length: UInt64
    /// Counts how often the data began anew.
    var generation: Int
  }

  private(set) var manner: Manner
  private let host: String
  /// Answers in a row that were none to the range that was asked for.
  private var uselessAnswers = 0
  private var reached: Progress
  private var restarts = 0
  private var smallSteps = SmallSteps(least: Self.smallStep, most: Self.mostSmallSteps)
  /// Other ways that were tried, in order.
  private var tried: [OtherWay] = []
  /// HTTP/1.1 is not tried for luck, but because only there the end of the body can be told.
  private var wantsFraming = false

  /// Bytes below which a request has brought next to nothing.
  private static let smallStep: UInt64 = 65_536
  private static let mostSmallSteps = 100
  /// Beginning anew is no loss of progress, but not without end either.
  private static let mostRestarts = 3
  /// After so many useless answers to a range, the whole is asked for.
  private static let mostUselessAnswers = 2

  /// - Parameter host: for reasons.
  init(host: String, connections: Int, from progress: Progress) {
    self.host = host
    manner = Manner(connections: connections)
    reached = progress
  }

  /// - Parameter progress: how far the data is now.
  mutating func after(_ outcome: Outcome, _ progress: Progress) -> Action {
    manner.isOnFreshConnection = false
    switch outcome {
    case .startOver(let reason):
      manner.isWhole = true
      manner.connections = 1
      return .again(.init("restart", reason))
    case .useless(let reason):
      if uselessAnswers == Self.mostUselessAnswers { return .fail(Failure(.badResponse, reason)) }
      noteUseless()
      return .again(.init("useless-answer", reason))
    case .askUnbounded(let reason):
      manner.connections = 1
      return .again(.oneConnection(reason))
    case .askHTTP1(let reason):
      guard !manner.keepsToHTTP1 else {
        return .fail(Failure(.badResponse, "\(reason), and HTTP/1.1 was refused\(Self.declare)"))
      }
      (manner.keepsToHTTP1, wantsFraming) = (true, true)
      return .again(.init("http1", reason))
    case .ended:
      let gained = note(progress)
      if gained == 0 {
        return otherWay(Failure(.shortBody, "\(host) ended the body at \(progress.length) bytes"), Circumstances())
      }
      guard !smallSteps.areTooMany else {
        // Not a short body, which would be gone on with at once.
        return .fail(Failure(.badResponse, "\(host) answered \(smallSteps.count) times in a row with next to nothing"))
      }
      return .again(nil)
    case .failed(let failure, let circumstances):
      let gained = note(progress, isStall: failure.code == .stalled)
      if smallSteps.areTooMany || failure.code.isOfAllServers { return .fail(failure) }
      if gained > 0, Self.isCut(failure.code) {
        return .again(.init("interrupted", failure.reason, code: failure.label))
      }
      return otherWay(failure, circumstances)
    }
  }

  private mutating func noteUseless() {
    uselessAnswers += 1
    if uselessAnswers < Self.mostUselessAnswers {
      manner.isOnFreshConnection = true
    } else {
      (manner.isWhole, manner.connections) = (true, 1)
    }
  }

  /// A single connection has to find out what became of the file.
  mutating func leaveOthers() { manner.connections = 1 }

  /// - Returns: bytes that are there now and never were before.
  private mutating func note(_ progress: Progress, isStall: Bool = false) -> UInt64 {
    if progress.generation != reached.generation, restarts < Self.mostRestarts {
      reached = Progress(length: 0, generation: progress.generation)
      restarts += 1
    }
    let gained = progress.length > reached.length ? progress.length - reached.length : 0
    reached.length = max(reached.length, progress.length)
    smallSteps.note(gained, isStall: isStall)
    // Ranges that lead nowhere stay so.
    manner.isWhole = uselessAnswers >= Self.mostUselessAnswers
    return gained
  }

  private static func isCut(_ code: FailureCode) -> Bool { [.cut, .shortBody, .stalled].contains(code) }

  // MARK: other ways

  /// What else can be tried before a mirror is left; each once.
  private enum OtherWay: String {
    case freshConnection = "a fresh connection"
    case http1 = "HTTP/1.1"
    case unconditional = "no If-Range"
    case otherFamily = "the other address family"
  }

  private mutating func otherWay(_ failure: Failure, _ circumstances: Circumstances) -> Action {
    for way in Self.ways(after: failure, circumstances, manner) where !tried.contains(way) {
      tried.append(way)
      switch way {
      case .freshConnection: manner.isOnFreshConnection = true
      case .http1: manner.keepsToHTTP1 = true
      case .unconditional: manner.isConditional = false
      case .otherFamily: manner.family = circumstances.family == .ipv6 ? .ipv4 : .ipv6
      }
      return .again(.init("other-way", failure.reason, code: failure.label, way: way.rawValue))
    }
    var failure = failure
    if !tried.isEmpty { failure.tried = tried.map(\.rawValue).joined(separator: ", ") }
    if wantsFraming { failure.reason += "; over HTTP/2 this server does not say how long the body is\(Self.declare)" }
    return .fail(failure)
  }

  /// In this order, because each costs less than the next.
  private static func ways(after failure: Failure, _ circumstances: Circumstances, _ manner: Manner) -> [OtherWay] {
    let family: [OtherWay] = circumstances.family == nil || manner.family != .any ? [] : [.otherFamily]
    switch failure.code {
    case .cut, .shortBody, .stalled, .badResponse:
      return [circumstances.wasMultiplexed ? .http1 : .freshConnection] + family
    case .tls: return family
    // Some servers, and what stands before them, choke on the field.
    case .http where circumstances.wasConditional && refusesTheForm(failure.status): return [.unconditional]
    default: return []
    }
  }

  /// Statuses that may be meant for how the request is put, and not for the file (RFC 9110 section 15.5, RFC 6585).
  private static func refusesTheForm(_ status: Int?) -> Bool {
    status.map { [400, 403, 405, 412, 413, 417, 428, 431, 500, 501].contains($0) } ?? false
  }

  private static let declare = ": declare its `size:` or a checksum"
}

extension FetchPolicy.Outcome {
  /// What is logged of a request that is put again.
  struct Log: Equatable {
    let event: String
    let reason: String
    var code: String?
    var way: String?

    init(_ event: String, _ reason: String, code: String? = nil, way: String? = nil) {
      self.event = event
      self.reason = reason
      self.code = code
      self.way = way
    }

    static func oneConnection(_ reason: String) -> Log { Log("fewer-connections", reason) }
  }
}

extension PartData {
  var progress: FetchPolicy.Progress { FetchPolicy.Progress(length: length, generation: generation) }
}
