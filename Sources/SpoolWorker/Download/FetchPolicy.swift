internal import Spool
internal import Transfer

/// Decides how to send each request to one mirror, and whether to send another. Pure: it gets the result of each
/// request and returns the next action.
struct FetchPolicy {
  struct Manner: Equatable {
    /// Connections for the rest, if the first response allows it.
    var connections: Int
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
    /// What else can be tried depends on the request: whether it had an If-Range, and the address family of its
    /// connection; nil if there was none, or if the URL contains the address.
    case failed(Failure, wasConditional: Bool = false, family: FetchRequest.AddressFamily? = nil)
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
  /// How far the data came since its wrong end was cut off; nil if it never was. What comes again is progress, too, but
  /// a small step.
  private var reachedAgain: UInt64?
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
  mutating func after(_ outcome: Outcome, _ progress: Progress) throws(Failure) -> (event: String, facts: Fields)? {
    manner.isOnFreshConnection = false
    switch outcome {
    case .again(let change, let reason):
      try make(change, reason)
      if change == .differs { reachedAgain = progress.length }
      let way: Fallback? = change == .askUnconditional ? .unconditional : nil
      let facts = Fields().with("connections", change == .askUnbounded ? 1 : nil).with("way", way?.rawValue)
      return (change.rawValue, facts.with("reason", reason))
    case .ended:
      if !note(progress) {
        return try fallBack(
          Failure(.shortBody, "\(host) ended the body at \(progress.length) bytes"), progress, false, nil)
      }
      guard !smallSteps.areTooMany else {
        // Not `short-body`, which would be retried at once.
        throw Failure(.badResponse, "\(host) sent next to nothing \(smallSteps.count) times in a row")
      }
      return nil
    case .failed(let failure, let wasConditional, let family):
      let hasMore = note(progress, isStall: failure.code == .stalled)
      if smallSteps.areTooMany || failure.code.isOfAllServers { throw failure }
      if hasMore, failure.code.isCut { return ("interrupted", Self.facts(failure, progress)) }
      return try fallBack(failure, progress, wasConditional, family)
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
    case .askUnconditional: manner.isConditional = false
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

  /// - Returns: whether there is progress.
  private mutating func note(_ progress: Progress, isStall: Bool = false) -> Bool {
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
    let isAhead = reachedAgain.map { progress.length > $0 } ?? false
    if isAhead { reachedAgain = progress.length }
    return gained > 0 || isAhead
  }

  /// From now on as many connections are used, if the next response shows that the server takes them.
  mutating func use(connections: Int) { manner.connections = connections }

  // MARK: fallbacks

  /// What else is tried, once each, before the mirror is given up.
  private enum Fallback: String {
    case freshConnection = "a fresh connection"
    case unconditional = "no If-Range"
    case otherFamily = "the other address family"
  }

  private static func facts(_ failure: Failure, _ progress: Progress, way: Fallback? = nil) -> Fields {
    Fields().with("at", progress.length).with("code", failure.label).with("way", way?.rawValue)
      .with("reason", failure.reason)
  }

  private mutating func fallBack(
    _ failure: Failure, _ progress: Progress, _ wasConditional: Bool, _ family: FetchRequest.AddressFamily?
  ) throws(Failure) -> (event: String, facts: Fields) {
    let fallbacks = Self.fallbacks(after: failure, wasConditional, manner.family == .any ? family : nil)
    for fallback in fallbacks where !tried.contains(fallback) {
      tried.append(fallback)
      answered = failure
      switch fallback {
      case .freshConnection: manner.isOnFreshConnection = true
      case .unconditional: manner.isConditional = false
      case .otherFamily: manner.family = family == .ipv6 ? .ipv4 : .ipv6
      }
      return ("other-way", Self.facts(failure, progress, way: fallback))
    }
    // A way that leads to no server says nothing about the server that was reached before.
    var failure = failure.code.blame == .server ? answered ?? failure : failure
    if !tried.isEmpty { failure.tried = tried.map(\.rawValue).joined(separator: ", ") }
    throw failure
  }

  /// In the order of their cost.
  /// - Parameter family: the one beside which there may be another.
  private static func fallbacks(
    after failure: Failure, _ wasConditional: Bool, _ family: FetchRequest.AddressFamily?
  ) -> [Fallback] {
    // The server asks for no request before its time.
    if failure.retryAfter != nil { return [] }
    let other: [Fallback] = family == nil ? [] : [.otherFamily]
    switch failure.code.otherWay {
    case .connection: return [.freshConnection] + other
    case .addressFamily: return other
    // Some servers and the proxies in front of them fail on the field.
    case .request: return wasConditional && refusesTheForm(failure.status) ? [.unconditional] : []
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
