internal import Spool
internal import Transfer

/// Decides how to send each request to one mirror, and whether to send another. Pure: it gets the result of each
/// request and returns the next action.
struct FetchPolicy {
  struct Manner: Equatable {
    /// Connections for the rest, if the first response allows it.
    var connections: Int
    /// Requests the whole, although there is data.
    var isWhole = false
    /// Sends the data's validator, if it has one.
    var isConditional = true
    /// On a new connection, for one request.
    var isOnFreshConnection = false
    var family = FetchRequest.AddressFamily.any
    /// A body in a coding is decoded. The place of its bytes in the file shows only from the start.
    var isDecoding = false
  }

  enum Outcome {
    case again(ResponseVerdict.Change, String)
    /// The body was complete, but the file was not.
    case ended
    case failed(Failure, Circumstances)
  }

  /// The properties of a failed request, which determine what else can be tried.
  struct Circumstances: Equatable {
    var wasConditional = false
    /// The address family of the connection; nil if there was none, or if the URL contains the address.
    var family: FetchRequest.AddressFamily?
  }

  /// What the log says of a request that is sent again.
  struct LogEntry: Equatable {
    let event: String
    let reason: String
    var code: String?
    var fallback: String?
  }

  /// The state of the data after a request.
  struct Progress: Equatable {
    var length: UInt64
    /// The bytes that are not in doubt.
    var believed: UInt64 = 0
    /// How often the data started over.
    var generation: Int
  }

  private(set) var manner: Manner
  private let host: String
  /// Consecutive responses that did not answer the requested range.
  private var uselessAnswers = 0
  /// Answers that differ from the data, since the last progress.
  private var differences = 0
  private var reached: Progress
  private var restarts = 0
  private var smallSteps = SmallSteps()
  private var tried: [Fallback] = []
  /// What the server that was reached last did wrong, if no data has come since.
  private var answered: Failure?

  /// Progress is counted from 0 again after starting over, but only this many times.
  private static let mostRestarts = 3
  /// After more of them, a single connection continues.
  private static let mostDifferences = 8
  /// After more of them, the mirror is given up. A search from the end of 1 TiB takes 24.
  private static let mostDifferencesInAll = 50
  /// After this many useless responses to a range, the whole is requested.
  private static let mostUselessAnswers = 2

  init(host: String, connections: Int, from progress: Progress) {
    self.host = host
    manner = Manner(connections: connections)
    reached = progress
  }

  /// To be called after each request. Another one is to be sent as ``manner`` says then.
  /// - Returns: what to log.
  mutating func after(_ outcome: Outcome, _ progress: Progress) throws(Failure) -> LogEntry? {
    manner.isOnFreshConnection = false
    switch outcome {
    case .again(let change, let reason):
      try make(change, reason)
      return LogEntry(event: change.rawValue, reason: reason)
    case .ended:
      let gained = note(progress)
      if gained == 0 {
        return try fallBack(Failure(.shortBody, "\(host) ended the body at \(progress.length) bytes"), Circumstances())
      }
      guard !smallSteps.areTooMany else {
        // Not `short-body`, which would be retried at once.
        throw Failure(.badResponse, "\(host) sent next to nothing \(smallSteps.count) times in a row")
      }
      return nil
    case .failed(let failure, let circumstances):
      let gained = note(progress, isStall: failure.code == .stalled)
      if smallSteps.areTooMany || failure.code.isOfAllServers { throw failure }
      if gained > 0, failure.code.isCut {
        return LogEntry(event: "interrupted", reason: failure.reason, code: failure.label)
      }
      return try fallBack(failure, circumstances)
    }
  }

  private mutating func make(_ change: ResponseVerdict.Change, _ reason: String) throws(Failure) {
    switch change {
    case .startOver: (manner.isWhole, manner.connections) = (true, 1)
    case .useless:
      let failure = Failure(.badResponse, reason)
      if uselessAnswers == Self.mostUselessAnswers { throw failure }
      answered = failure
      noteUseless()
    case .differs:
      differences += 1
      // Each of several connections may be the one that sends junk.
      if differences > Self.mostDifferences { manner.connections = 1 }
      guard differences <= Self.mostDifferencesInAll else { throw Failure(.badResponse, reason) }
    case .askUnbounded: manner.connections = 1
    case .askDecoded: (manner.isDecoding, manner.connections) = (true, 1)
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

  /// From now on a single connection is used, to find out what happened to the file.
  mutating func leaveOthers() { manner.connections = 1 }

  /// - Returns: the number of bytes beyond the furthest point reached before.
  private mutating func note(_ progress: Progress, isStall: Bool = false) -> UInt64 {
    if progress.generation != reached.generation, restarts < Self.mostRestarts {
      reached = Progress(length: 0, believed: 0, generation: progress.generation)
      restarts += 1
    }
    let furthest = Progress(
      length: max(reached.length, progress.length), believed: max(reached.believed, progress.believed),
      generation: reached.generation)
    let gained = max(furthest.length - reached.length, furthest.believed - reached.believed)
    reached = furthest
    smallSteps.note(gained, isStall: isStall)
    if gained > 0 { (answered, differences) = (nil, 0) }
    // Ranges that were useless are not tried again.
    manner.isWhole = uselessAnswers >= Self.mostUselessAnswers
    return gained
  }

  // MARK: fallbacks

  /// What else is tried, once each, before the mirror is given up.
  private enum Fallback: String {
    case freshConnection = "a fresh connection"
    case unconditional = "no If-Range"
    case otherFamily = "the other address family"
  }

  private mutating func fallBack(_ failure: Failure, _ circumstances: Circumstances) throws(Failure) -> LogEntry {
    for fallback in Self.fallbacks(after: failure, circumstances, manner) where !tried.contains(fallback) {
      tried.append(fallback)
      answered = failure
      switch fallback {
      case .freshConnection: manner.isOnFreshConnection = true
      case .unconditional: manner.isConditional = false
      case .otherFamily: manner.family = circumstances.family == .ipv6 ? .ipv4 : .ipv6
      }
      return LogEntry(
        event: "other-way", reason: failure.reason, code: failure.label, fallback: fallback.rawValue)
    }
    // A way that leads to no server says nothing about the server that was reached before.
    var failure = failure.code.blame == .server ? answered ?? failure : failure
    if !tried.isEmpty { failure.tried = tried.map(\.rawValue).joined(separator: ", ") }
    throw failure
  }

  /// In the order of their cost.
  private static func fallbacks(after failure: Failure, _ circumstances: Circumstances, _ manner: Manner) -> [Fallback]
  {
    // The server asks for no request before its time.
    if failure.retryAfter != nil { return [] }
    let family: [Fallback] = circumstances.family == nil || manner.family != .any ? [] : [.otherFamily]
    switch failure.code.otherWay {
    case .connection: return [.freshConnection] + family
    case .addressFamily: return family
    // Some servers and the proxies in front of them fail on the field.
    case .request: return circumstances.wasConditional && refusesTheForm(failure.status) ? [.unconditional] : []
    case nil: return []
    }
  }

  /// Statuses that may concern the form of the request, not the file (RFC 9110 section 15.5, RFC 6585).
  private static func refusesTheForm(_ status: Int?) -> Bool {
    status.map { [400, 403, 405, 412, 413, 417, 428, 431, 500, 501].contains($0) } ?? false
  }
}

extension PartData {
  var progress: FetchPolicy.Progress {
    FetchPolicy.Progress(length: length, believed: position, generation: generation)
  }
}

/// Counts consecutive requests that brought next to nothing. Without a limit, a server that sends a few bytes each time
/// would be asked forever.
struct SmallSteps {
  /// This many consecutive stalls are too many, because each takes long.
  private static let mostStalls = 3

  /// A request with at least this many bytes is not a small step.
  let least: UInt64
  /// This many consecutive small steps are too many.
  let most: Int
  private(set) var count = 0
  private var stalls = 0

  init(least: UInt64 = 65_536, most: Int = 100) { (self.least, self.most) = (least, most) }

  mutating func note(_ bytes: UInt64, isStall: Bool = false) {
    if bytes >= least { return reset() }
    count += 1
    stalls = isStall ? stalls + 1 : 0
  }

  mutating func reset() { (count, stalls) = (0, 0) }

  var areTooMany: Bool { count >= most || stalls >= Self.mostStalls }
}
