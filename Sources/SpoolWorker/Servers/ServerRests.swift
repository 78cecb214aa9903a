internal import Spool

/// The servers and proxies that are left alone for a while, and how many transfers those bear that were. One job at a
/// time probes a server whose rest is over; the others follow by ones, twos and fours. Pure.
///
/// Times are milliseconds of the loop's clock.
struct ServerRests: Equatable {
  /// What a job needs to fetch from one URL: its server (scheme, host and port), then its proxy, if there is one.
  typealias Way = [String]
  /// What a job waits for that failed for lack of a network.
  static let network = "network"

  enum Cause: String {
    /// This host cannot reach it. Another host may.
    case unreachable
    case asked
    /// It fails for several URLs in a row.
    case broken
  }

  /// What a job's failure says about a server.
  struct Fault {
    let cause: Cause
    /// As in records.
    let code: String
    /// For a person.
    let reason: String
    /// Seconds for which the server asks.
    var asked: Int64?
    /// A hash of the URL; nil for one with credentials of its own, which may be all that the server refuses.
    var url: UInt64?
    /// Of a server that redirects led to: this one has answered.
    var isOfOther = false

    /// Whether it counts for all jobs, whichever URL has it.
    fileprivate var isBelieved: Bool { cause != .asked && !isOfOther }
    /// It says nothing of when to come again.
    fileprivate var isUntimed: Bool { cause != .broken && asked == nil }
  }

  /// For how long a job bears that its server answers nobody.
  struct Patience: Equatable {
    /// Since when there is the job.
    let since: Int64
    let milliseconds: Int64

    static let endless = Patience(since: 0, milliseconds: .max)
  }

  struct Rest: Equatable {
    fileprivate(set) var cause: Cause
    fileprivate(set) var code: String
    fileprivate(set) var reason: String
    fileprivate(set) var until: Int64
    fileprivate(set) var since: Int64
    fileprivate(set) var failed: Int64
    /// Failed probes in a row, with the failure that began the rest.
    fileprivate(set) var failures = 1
    /// It answered a moment before, so that it has perhaps lost one connection only.
    fileprivate var isSudden = false
    /// The jobs that probe, and until when no other one begins to. Each may show something after that, too.
    fileprivate var probes: [UInt64: Int64] = [:]
    /// The URL that alone said so; nil once another one did.
    fileprivate var url: UInt64?
    fileprivate var isBelieved: Bool

    /// One that another worker, or an earlier run, has found.
    /// - Parameter url: as in ``onlyURL``.
    init(
      cause: Cause, code: String, reason: String, until: Int64, since: Int64, failed: Int64, failures: Int,
      url: UInt64? = nil
    ) {
      (self.cause, self.code, self.reason) = (cause, code, reason)
      (self.until, self.since, self.failed, self.failures) = (until, since, failed, failures)
      (self.url, isBelieved) = (url == 0 ? nil : url, url == nil)
    }

    /// Nobody knows when it can be reached again.
    fileprivate var isLasting: Bool { cause == .unreachable && !isSudden }

    fileprivate func isProbed(at now: Int64) -> Bool { probes.values.contains { now < $0 } }

    /// A hash of the URL that alone said so; 0 if it has credentials of its own; nil once another one said it, too.
    var onlyURL: UInt64? { isBelieved ? nil : url ?? 0 }
    /// The servers fail that redirects lead to.
    var isOfOther: Bool { cause == .broken && !isBelieved }

    fileprivate init(_ fault: Fault, at now: Int64) {
      (cause, code, reason, until, since, failed) = (fault.cause, fault.code, fault.reason, now, now, now)
      (url, isBelieved) = (fault.url, fault.isBelieved)
    }
  }

  /// What a server bears that has rested.
  private struct Pace: Equatable {
    /// How many transfers it gets now, and at most.
    var limit = 1
    var most: Int
    var growsAt: Int64
    /// It has refused more, even if it may have as many as any other.
    var hasRefused = false
    /// Milliseconds between two requests; 0 for none.
    var pause = 0.0
    var hasRefusedRate = false
  }

  private struct Answers: Equatable {
    var last: Int64
    /// The same, or since when it rests.
    private(set) var seen: Int64
    /// How many there were since it last refused, and in how many milliseconds of its rest and of being asked.
    var count = 0
    var active: Int64 = 0
    /// How many of them were in the current burst, and since when.
    var burst = 0
    var since: Int64

    init(at now: Int64) { (last, seen, since) = (now, now, now) }

    /// - Parameter longest: of a longer gap, so many milliseconds count: then nobody has asked it.
    mutating func pass(to now: Int64, atMost longest: Int64) {
      active += min(now - seen, longest)
      if now - seen >= 1000 { (burst, since) = (0, now) }
      seen = now
    }

    mutating func note(at now: Int64, atMost longest: Int64) {
      pass(to: now, atMost: longest)
      (last, count, burst) = (now, count + 1, burst + 1)
    }
  }

  static let shortestSeconds: Int64 = 10
  private static let shortest = shortestSeconds * 1000
  private static let blink: Int64 = 1000
  private static let longest: Int64 = 3_600_000
  private static let longestOfProxy: Int64 = 300_000
  /// For how long one URL's word counts for all.
  private static let longestOfOne: Int64 = 60_000
  private static let longestAsked: Int64 = RetryDecision.longestRetryAfter * 1000
  /// A server that has refused without saying when it takes more is asked a little less often than it seems to bear,
  /// and with each answer a little more often.
  private static let caution = 0.9
  private static let easing = 0.999
  /// After so long without a refusal a server gets twice as many transfers.
  private static let growth: Int64 = 300_000
  /// So many URLs in a row that a server fails for make it the server's failure.
  private static let mostBroken = 3
  /// The maximum number of servers of which something is remembered.
  private static let most = 1000
  /// Until a probe shows something, a job that must not wait for it looks again.
  private static let probeTime: Int64 = 10_000
  /// For so long: it may read what is there first, or go on with another mirror, and ask this server hours later.
  private static let longestProbe: Int64 = 120_000
  /// The most patience with a name that nobody knows, while other servers answer.
  private static let longestForUnknownName: Int64 = 86_400_000

  private(set) var rests: [String: Rest] = [:]
  private var paces: [String: Pace] = [:]
  /// The URLs for which a server has failed since it last answered.
  private var broken: [String: Set<UInt64>] = [:]
  private var answers: [String: Answers] = [:]
  private var lastAnswer = Int64.min
  let perHost: Int

  init(perHost: Int = .max) { self.perHost = perHost }

  // MARK: who may start

  var isEmpty: Bool { rests.isEmpty && paces.isEmpty }

  /// Whether no job may go this way now.
  /// - Parameter wanted: when a person asked for the job.
  func isClosed(_ way: Way, at now: Int64, wantedAt wanted: Int64? = nil) -> Bool {
    guard !rests.isEmpty else { return false }
    return way.contains { key in
      guard let rest = rests[key] else { return false }
      // Files have their times in seconds.
      return rest.isProbed(at: now) || now < rest.until && (wanted ?? .min) < rest.failed - 999
    }
  }

  /// Whether a job of this worker probes the server now.
  func isProbed(_ key: String, at now: Int64) -> Bool { rests[key]?.isProbed(at: now) ?? false }

  /// Another worker probes it.
  mutating func leave(_ key: String, until time: Int64) {
    if let rest = rests[key] { rests[key]?.until = max(rest.until, time) }
  }

  func answered(_ key: String) -> Int64? { answers[key]?.last }

  /// Milliseconds between two requests to a server that has refused some without saying when it takes more; 0 for none.
  func pause(of server: String) -> Int64 { Int64(paces[server]?.pause ?? 0) }

  func limit(of server: String) -> Int { paces[server].map { min($0.limit, $0.most) } ?? .max }

  /// A job goes this way. If its server has rested, it is the probe.
  mutating func started(_ id: UInt64, _ way: Way, at now: Int64) {
    for key in way where rests[key]?.isProbed(at: now) == false {
      rests[key]?.probes[id] = now + Self.longestProbe
    }
  }

  /// Whether this job may ask by this way, as its probe if need be.
  mutating func mayAsk(_ id: UInt64, _ way: Way, at now: Int64) -> Bool {
    let others = way.filter { now >= rests[$0]?.probes[id] ?? .min }
    if isClosed(others, at: now) { return false }
    started(id, way, at: now)
    return true
  }

  /// What this way waits for, and until when; nil if it is open.
  func obstacle(_ way: Way, at now: Int64) -> (key: String, rest: Rest, until: Int64)? {
    let closed = way.compactMap { key in rests[key].map { (key, $0) } }.map { key, rest in
      (key, rest, max(rest.until, now + (rest.isProbed(at: now) ? Self.probeTime : 0)))
    }
    return closed.filter { $0.2 > now }.max { $0.2 < $1.2 }
  }

  /// When the first rest ends that a run stays for; nil if there is none.
  func firstEnd(at now: Int64) -> Int64? { rests.values.filter { !$0.isLasting }.map { max($0.until, now) }.min() }

  /// Those whose rest no run stays for.
  var lasting: [String] { rests.filter(\.value.isLasting).map(\.key) }

  /// Those that a change of the network may end.
  var unreachable: [String] { rests.filter { $0.value.cause == .unreachable }.map(\.key) }

  /// Whether a job gives up on this way: as long as it is patient, and as there is the job, its server has answered
  /// nobody, and a probe has just failed. A proxy is this host's own, and never given up.
  func isAway(_ way: Way, _ patience: Patience, at now: Int64) -> Bool {
    guard let key = way.first, let rest = rests[key], !rest.isProbed(at: now), now < rest.until, !rest.isOfOther else {
      return false
    }
    let answered = answered(key)
    let isUnknown = rest.code == FailureCode.resolve.rawValue && answered == nil && lastAnswer > rest.since
    let longest = isUnknown ? min(patience.milliseconds, Self.longestForUnknownName) : patience.milliseconds
    return now - max(patience.since, answered ?? .min, rest.since) > longest
  }

  /// The failures of a job show that its server was away before that was noted.
  mutating func noteFailure(_ key: String, since: Int64) {
    if let rest = rests[key], !rest.isOfOther { rests[key]?.since = min(rest.since, since) }
  }

  // MARK: what jobs find

  /// - Parameter running: how many transfers the server has, with this one; nil if that is not known.
  /// - Parameter jitter: random, from 0 to 1.
  /// - Returns: when the rest ends, and whether it is new; nil if the failure counts as the resource's.
  mutating func failed(
    _ id: UInt64, _ key: String, _ fault: Fault, running: Int? = nil, at now: Int64, jitter: Double
  ) -> (until: Int64, isNew: Bool)? {
    guard var rest = rests[key] else {
      guard fault.cause != .broken || areBroken(key, fault.url) else { return nil }
      makeRoom()
      var rest = Rest(fault, at: now)
      rest.isSudden = fault.isUntimed && answered(key).map { now - $0 < Self.shortest } ?? false
      rest.until = now + duration(key, rest, fault, jitter)
      rests[key] = rest
      if fault.cause != .unreachable, !fault.isOfOther, !Self.isProxy(key) { slowDown(key, fault, running, at: now) }
      return (rest.until, true)
    }
    // Its own URL says nothing new.
    if fault.cause == .asked, let url = fault.url, rest.cause == .asked, url != rest.url { rest.isBelieved = true }
    let isProbe = rest.probes.removeValue(forKey: id) != nil
    if isProbe {
      // It answered in between.
      if rest.isOfOther != fault.isOfOther { (rest.since, rest.failures) = (now, 0) }
      if fault.cause != .asked || rest.cause != .asked { (rest.url, rest.isBelieved) = (fault.url, fault.isBelieved) }
      rest.failures += 1
      rest.failed = now
      (rest.cause, rest.code, rest.reason) = (fault.cause, fault.code, fault.reason)
    }
    // One that had begun before the rest shows only for how long the server asks.
    if isProbe || fault.asked != nil && rest.cause == .asked {
      let until = now + duration(key, rest, fault, jitter)
      rest.until = isProbe ? until : max(rest.until, until)
    }
    rests[key] = rest
    return (max(rest.until, now), false)
  }

  /// A server that says when it takes more bears half of what it had before. Of one that only refuses, nobody knows
  /// whether it minds the transfers at once or the requests in a time, so it gets fewer of both.
  private mutating func slowDown(_ key: String, _ fault: Fault, _ running: Int?, at now: Int64) {
    let former = paces[key]
    let most = min(former?.most ?? perHost, perHost)
    let isUntimed = fault.cause == .asked && fault.asked == nil
    let less = isUntimed ? running.map { min(most, $0 - 1) } : nil
    let half = (running.map { min(most, $0) } ?? most) / 2
    var pace = Pace(most: max(1, less ?? half), growsAt: .max, hasRefused: true)
    pace.pause = former?.pause ?? 0
    if isUntimed, var answers = answers[key] {
      let gap = now - answers.seen
      answers.pass(to: now, atMost: Self.shortest)
      // Of one that is asked for the first time after a while, nothing is known but that.
      let inBurst = answers.burst > 0 ? now - answers.since : gap < Self.shortest ? gap : 1
      // Between the rate that it has refused and the one that it has borne, with the rest in between.
      let refused = max(pace.pause, Double(max(1, inBurst)) / Double(max(1, answers.burst)))
      let borne = former?.hasRefusedRate ?? false ? Double(answers.active) / Double(max(1, answers.count)) : refused
      pace.pause = min((refused * max(refused, borne)).squareRoot() / Self.caution, Double(Self.shortest))
      (answers.count, answers.active, answers.burst, pace.hasRefusedRate) = (0, 0, 0, true)
      self.answers[key] = answers
    }
    paces[key] = pace
  }

  private func duration(_ key: String, _ rest: Rest, _ fault: Fault, _ jitter: Double) -> Int64 {
    let most = Self.isProxy(key) ? Self.longestOfProxy : Self.longest
    func pause(_ failures: Int) -> Int64 {
      let count = rest.isSudden ? failures - 1 : failures
      if count == 0 { return Self.blink }
      return Int64(Double(min(Self.shortest << Int64(min(max(count - 1, 0), 12)), most)) * (0.8 + 0.4 * jitter))
    }
    guard let asked = fault.asked else { return min(pause(rest.failures), rest.isBelieved ? most : Self.longestOfOne) }
    let longest = rest.isBelieved ? Self.longestAsked : Self.longestOfOne
    // A server that says one second each time is not asked each second.
    return min(max(asked * 1000, 1000, rest.failures > 1 ? pause(rest.failures - 1) : 0), longest)
  }

  private mutating func areBroken(_ key: String, _ url: UInt64?) -> Bool {
    guard let url else { return false }
    if broken.count >= Self.most { broken = [:] }
    broken[key, default: []].insert(url)
    return broken[key]?.count ?? 0 >= Self.mostBroken
  }

  /// A server answered a job about its resource. Only a probe ends a rest: others may use connections from before.
  /// - Returns: what rested.
  mutating func answered(_ id: UInt64, _ way: Way, at now: Int64) -> [String] {
    var back: [String] = []
    lastAnswer = now
    for key in way {
      broken[key] = nil
      if answers[key] == nil {
        if answers.count >= 10 * Self.most { answers = [:] }
        answers[key] = Answers(at: now)
      }
      let rest = rests[key].map { $0.until - (answers[key]?.seen ?? now) } ?? 0
      answers[key]?.note(at: now, atMost: max(rest, Self.shortest))
      if rests[key]?.probes[id] != nil {
        end(key, at: now)
        back.append(key)
      }
      speedUp(key, at: now)
    }
    return back
  }

  private mutating func end(_ key: String, at now: Int64) {
    guard rests.removeValue(forKey: key) != nil, !Self.isProxy(key) else { return }
    // What could not be reached need not bear less than before; but many jobs wait for it.
    var pace = paces[key] ?? Pace(most: perHost, growsAt: 0)
    (pace.limit, pace.growsAt) = (1, now + Self.growth)
    paces[key] = pace
  }

  private mutating func speedUp(_ key: String, at now: Int64) {
    guard var pace = paces[key], rests[key] == nil else { return }
    if now >= pace.growsAt {
      pace.hasRefused = 2 * pace.most < perHost
      (pace.most, pace.growsAt) = (min(2 * pace.most, perHost), now + Self.growth)
    }
    pace.limit = min(2 * pace.limit, pace.most)
    pace.pause *= Self.easing
    if pace.pause < 1 { pace.pause = 0 }
    paces[key] = pace.limit >= perHost && pace.pause == 0 && !pace.hasRefused ? nil : pace
  }

  /// A probe that has shown nothing leaves its turn to the next job.
  mutating func ended(_ id: UInt64) {
    for (key, rest) in rests where rest.probes[id] != nil { rests[key]?.probes[id] = nil }
  }

  /// What could not be reached may be probed at once, because the network has changed.
  mutating func networkChanged(at now: Int64) {
    for (key, rest) in rests where rest.cause == .unreachable { rests[key]?.until = min(rest.until, now) }
  }

  /// Takes what another worker or a person has made of a server.
  /// - Parameter rest: nil for one that rests no more.
  /// - Parameter written: since when it bears so many; nil for now.
  /// - Returns: whether a rest has ended before its time.
  mutating func learn(
    _ key: String, _ rest: Rest?, bears: Int? = nil, pause: Int64 = 0, answered: Int64? = nil,
    written: Int64? = nil, at now: Int64
  ) -> Bool {
    let before = rests[key]
    if let answered, answered > self.answered(key) ?? .min {
      answers[key, default: Answers(at: answered)].last = answered
    }
    if bears != nil || pause > 0 {
      var pace = paces[key] ?? Pace(most: perHost, growsAt: 0)
      // A time so far ahead is by a clock that was set back since, and would begin anew with each run.
      let isWrong = rest == nil && written ?? now > now + Self.growth
      pace.most = max(1, min(bears ?? perHost, perHost))
      pace.growsAt = isWrong ? now : min(written ?? now, now) + Self.growth
      (pace.pause, pace.hasRefused) = (Double(pause), bears.map { $0 <= perHost } ?? false)
      if pace.hasRefused || pause > 0 { paces[key] = pace }
    }
    guard var rest else {
      end(key, at: now)
      return before != nil
    }
    if before == nil { makeRoom() }
    rest.probes = before?.probes ?? [:]
    rests[key] = rest
    return rest.until <= now && before.map { now < $0.until } ?? false
  }

  /// How many transfers a server bears that has refused more; nil for one that has not.
  func bears(_ key: String) -> Int? { paces[key].flatMap { $0.hasRefused ? $0.most : nil } }

  /// What is worth a write when it changes: how many it bears, and the magnitude of its pause.
  func remembered(of key: String) -> (bears: Int?, magnitude: Int) { (bears(key), pause(of: key).leadingZeroBitCount) }

  /// It bears no more than so many, because it has refused a connection beside them. A job that runs without a slot is
  /// not among them.
  mutating func bears(_ key: String, _ number: Int, at now: Int64) {
    let number = max(1, number)
    var pace = paces[key] ?? Pace(limit: number, most: perHost, growsAt: 0)
    (pace.most, pace.growsAt) = (max(1, min(pace.most, number, perHost - 1)), now + Self.growth)
    pace.hasRefused = true
    paces[key] = pace
  }

  /// Those that have rested longest are forgotten, which costs a request each.
  private mutating func makeRoom() {
    if rests.count >= Self.most, let oldest = rests.min(by: { $0.value.since < $1.value.since })?.key {
      rests[oldest] = nil
    }
    if paces.count >= Self.most { paces = [:] }
  }

  // MARK: names

  private static let proxyScheme = "proxy://"

  static func proxy(_ name: String) -> String { proxyScheme + name }

  /// What a job waits for whose server has asked it for more than the server's rest: only a person ends that.
  static func gesture(_ key: String) -> String { "gesture " + key }

  static func isProxy(_ key: String) -> Bool { key.begins(with: proxyScheme) }

  /// For a person: a proxy without the scheme that tells it from servers.
  static func name(of key: String) -> String { isProxy(key) ? String(key.dropFirst(proxyScheme.count)) : key }

  /// What is wrong with the proxies, or with the servers, that rest; nil if none does.
  func reason(ofProxies: Bool) -> String? {
    let reasons = rests.filter { Self.isProxy($0.key) == ofProxies }.sorted { $0.key < $1.key }.map(\.value.reason)
    let more = reasons.count > 3 ? ["and \(reasons.count - 3) more"] : []
    return reasons.isEmpty ? nil : (reasons.prefix(3) + more).joined(separator: "; ")
  }
}

/// For how long a run that ends when nothing is left waits for servers that rest: as long as it gets somewhere. Pure.
///
/// Times are milliseconds of the loop's clock.
struct ServerStay {
  /// A longer rest is for the next run.
  static let longest: Int64 = 30_000

  private var until: Int64?
  /// What had been done when it last began to wait.
  private var progress: UInt64 = 0

  var isOn: Bool { until != nil }

  /// - Parameter end: when the rest ends.
  /// - Parameter progress: what has been done so far, in any unit.
  /// - Returns: the milliseconds to wait; nil to end the run.
  mutating func wait(until end: Int64?, at now: Int64, progress: UInt64) -> Int64? {
    guard let end, end - now <= Self.longest, progress > self.progress || until.map({ now < $0 }) ?? false else {
      until = nil
      return nil
    }
    // A second more, because due times are whole seconds.
    if progress > self.progress { (until, self.progress) = (max(end, now) + 1500, progress) }
    return max(1, end - now)
  }
}
