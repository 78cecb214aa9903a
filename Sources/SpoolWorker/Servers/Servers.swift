internal import Spool
internal import Transfer

/// What this worker knows of servers and proxies that rest: asked by the schedule and by attempts, told by attempts.
@WorkerLoop final class Servers {
  private(set) var rests: ServerRests
  /// Called with what may be asked again before it was expected.
  var cameBack: (Set<String>) -> Void = { _ in }
  private let spool: Spool
  private let log: @Sendable (Event) -> Void
  private let way: (URLParts) -> ServerRests.Way
  private let running: (String) -> Int?
  private let probe: (_ server: String, _ takes: Bool) -> Bool
  /// Those that this worker probes, and the turns that it has for that.
  private var turns: [String: String] = [:]
  /// When a person last heard of a rest.
  private var told: [String: Int64] = [:]
  /// What a person has heard of: servers that are away, and ``ServerRests/network``.
  private var toldAway: Set<String> = []
  /// nil where a person waits for this worker, which then shares nothing with others.
  private let notes: ServerNotes?
  private let expectsMistakes: Bool
  /// Servers that have never answered, and why: where a person waits, a mistake in a URL is no reason to wait.
  private var mistaken: [String: Failure] = [:]
  /// A server that rests again within this time is no news. In milliseconds.
  private static let newsAfter: Int64 = 3_600_000

  /// - Parameters:
  ///   - isForPerson: whether a person waits for this worker. Otherwise it shares what it knows with other workers.
  ///   - way: what a job needs to fetch from a URL.
  ///   - probe: takes the turn to probe a server, which one of the spool's workers has, or gives it back. Returns
  ///     whether this one has it.
  ///   - running: how many transfers of this worker a server has; nil if that is not known.
  init(
    _ spool: Spool, perHost: Int, log: @escaping @Sendable (Event) -> Void, isForPerson: Bool, expectsMistakes: Bool,
    probe: @escaping (_ server: String, _ takes: Bool) -> Bool = { _, _ in true },
    way: @escaping (URLParts) -> ServerRests.Way, running: @escaping (String) -> Int?
  ) {
    (self.spool, self.log, self.way, self.running, self.probe) = (spool, log, way, running, probe)
    self.expectsMistakes = expectsMistakes
    notes = isForPerson ? nil : ServerNotes(spool, log)
    rests = ServerRests(perHost: perHost)
  }

  private var now: Int64 { LoopExecutor.milliseconds() }

  /// The reverse of ``Spool/moment(_:)``, in whole seconds from there on.
  private func time(_ moment: Int64) -> Timestamp { spool.now() + Int64((Double(moment - now) / 1000).rounded(.up)) }

  // MARK: what the schedule says

  func started(_ id: UInt64, _ way: ServerRests.Way) { rests.started(id, way, at: now) }

  func ended(_ id: UInt64) { rests.ended(id) }

  /// Takes the turn to probe those of this way whose rests are over. The others wait until that has shown something.
  /// - Returns: false if another worker has it, or what it has found makes the server rest on.
  func takeTurn(_ way: ServerRests.Way) -> Bool {
    // What a person wants waits for nobody.
    if notes == nil || rests.rests.isEmpty || rests.isClosed(way, at: now) { return true }
    let keys = way.filter { rests.rests[$0] != nil && turns[$0] == nil }
    if keys.isEmpty { return true }
    for key in keys {
      // What one host cannot reach, each probes for itself.
      let turn = rests.rests[key]?.cause == .unreachable ? "\(spool.owner.host) \(key)" : key
      guard probe(turn, true) else {
        rests.leave(key, until: now + SpoolLimits.pause)
        return false
      }
      turns[key] = turn
    }
    readNotes(isForced: true)
    return !rests.isClosed(way, at: now)
  }

  /// Looks at what other workers and people have made of the servers' files, if it is time.
  func look() {
    for (key, turn) in turns where !rests.isProbed(key, at: now) {
      turns[key] = nil
      _ = probe(turn, false)
    }
    readNotes()
  }

  /// - Parameter isForced: whether the last look does not count for a while.
  private func readNotes(isForced: Bool = false) {
    guard let found = notes?.look(at: now, isForced: isForced), !found.isEmpty else { return }
    var back: Set<String> = []
    for (key, seen) in found {
      let note = seen?.note
      let isBack = rests.learn(
        key, rest(seen), bears: note?.bears, pause: Int64(note?.pause ?? 0),
        answered: note?.answered.map { min(spool.moment($0), now) },
        written: seen.map { spool.moment(Timestamp(seconds: $0.modified)) }, at: now)
      guard isBack else { continue }
      back.insert(key)
      // Workers leave the file, with what the server bears, and no rest in it.
      if seen == nil || rests.rests[key] != nil { back.insert(ServerRests.gesture(key)) }
      if rests.rests[key] == nil { tellBack(key) }
    }
    if !back.isEmpty { cameBack(back) }
  }

  private func rest(_ seen: ServerFiles.Seen?) -> ServerRests.Rest? {
    // What another host cannot reach says nothing about this one.
    guard let seen, let rest = seen.note?.rest(of: spool.owner.host),
      let cause = ServerRests.Cause(rawValue: rest.cause)
    else { return nil }
    // The clock of the host that has written it may have been ahead.
    let end = seen.end(of: rest)
    return ServerRests.Rest(
      cause: cause, code: rest.code, reason: rest.reason,
      until: min(spool.moment(Timestamp(seconds: end)), now + max(0, end - rest.failed.seconds) * 1000),
      since: min(spool.moment(rest.since), now), failed: min(spool.moment(rest.failed), now), failures: rest.failures,
      url: rest.url)
  }

  private func save(_ key: String) {
    let rest = rests.rests[key].map { rest in
      ServerNote.Rest(
        since: time(rest.since), failed: time(rest.failed), until: time(rest.until), cause: rest.cause.rawValue,
        code: rest.code, reason: rest.reason, failures: rest.failures, url: rest.onlyURL,
        host: rest.cause == .unreachable ? spool.owner.host : nil)
    }
    let pause = rests.pause(of: key)
    notes?.save(
      ServerNote(
        server: key, rests: rest.map { [$0] } ?? [], answered: rests.answered(key).map(time), bears: rests.bears(key),
        pause: pause > 0 ? Int(pause) : nil), of: spool.owner.host)
  }

  /// An address or a route of this host has changed.
  func networkChanged() {
    let keys = rests.unreachable
    rests.networkChanged(at: now)
    toldAway.remove(ServerRests.network)
    cameBack(Set(keys + [ServerRests.network]))
  }

  // MARK: what attempts ask

  /// What an attempt waits for if all of its mirrors rest.
  /// - Throws: ``Failure``: `server-away`, or one that is final.
  func wait(_ id: UInt64, of mirrors: [MirrorURL], _ patience: ServerRests.Patience) throws(Failure) -> JobWait? {
    if rests.isEmpty && mistaken.isEmpty || mirrors.isEmpty { return nil }
    let ways = mirrors.map { way($0.parts) }
    let mistakes = ways.compactMap { mistaken[$0[0]] }
    if mistakes.count == ways.count { throw mistakes[0] }
    if ways.allSatisfy({ rests.isAway($0, patience, at: now) }) { throw away(ways[0][0]) }
    var first: (key: String, rest: ServerRests.Rest, until: Int64)?
    for way in ways {
      if takeTurn(way), rests.mayAsk(id, way, at: now) { return nil }
      guard let obstacle = rests.obstacle(way, at: now) else { continue }
      if obstacle.until < first?.until ?? .max { first = obstacle }
    }
    return first.map { JobWait(for: $0.key, $0.rest.reason, until: spool.now() + seconds(until: $0.until)) }
  }

  private func away(_ key: String) -> Failure {
    let rest = rests.rests[key]
    let since = time(rest?.since ?? now)
    return Failure(.serverAway, "\(name(key)) has answered nobody since \(since): \(rest?.reason ?? "")")
  }

  /// Whether a person hears of it: of the first job that is given up for a server that is away, or waits for a network,
  /// not of each.
  func isNews(_ record: FailureRecord) -> Bool {
    let isForNetwork = record.failure.code == .noNetwork && record.retry != nil
    guard isForNetwork || record.failure.code == .serverAway else { return true }
    if toldAway.count >= 1000 { toldAway = [] }
    // The reason begins with the server.
    let what = isForNetwork ? ServerRests.network : String(record.failure.reason.prefix(before: " "))
    return toldAway.insert(what).inserted
  }

  /// The failure of a mirror that is not asked, because it rests; nil if it may be asked.
  func obstacle(_ id: UInt64, _ mirror: MirrorURL, _ patience: ServerRests.Patience) -> Failure? {
    if rests.isEmpty { return nil }
    let way = way(mirror.parts)
    guard !takeTurn(way) || !rests.mayAsk(id, way, at: now), let (_, rest, until) = rests.obstacle(way, at: now) else {
      return nil
    }
    let code = FailureCode(label: rest.code) ?? .connect
    return Failure(code, rest.reason, status: FailureCode.status(of: rest.code))
      .resting(seconds(until: until), isAway: rests.isAway(way, patience, at: now))
  }

  private func seconds(until end: Int64) -> Int64 { max(1, (end - now + 999) / 1000) }

  /// Whether the server takes several connections of one job: if it has refused none.
  func bearsMore(_ mirror: MirrorURL) -> Bool {
    let server = way(mirror.parts)[0]
    return rests.bears(server) == nil && rests.pause(of: server) == 0
  }

  /// Whether a job that has begun elsewhere may use the server beside. It is no probe.
  func takesPart(_ mirror: MirrorURL) -> Bool {
    bearsMore(mirror) && way(mirror.parts).allSatisfy { rests.rests[$0] == nil }
  }

  // MARK: what attempts tell

  /// A connection of a job that has others was given up.
  func hasRefusedConnection(_ mirror: MirrorURL, _ failure: Failure) {
    let isRefusal = failure.code == .http && [429, 503].contains(failure.status)
    guard failure.code == .connect || isRefusal, let key = way(mirror.parts).first else { return }
    rests.bears(key, running(key) ?? 1, at: now)
    save(key)
  }

  func answered(_ id: UInt64, _ mirror: MirrorURL) {
    let way = way(mirror.parts)
    let before = rests.remembered(of: way[0])
    let back = rests.answered(id, way, at: now)
    if back.isEmpty {
      if rests.remembered(of: way[0]) != before { save(way[0]) }
      return
    }
    for key in back {
      tellBack(key)
      save(key)
    }
    cameBack(Set(back))
  }

  /// The failure, with the rest of its server if it is the server's.
  /// - Parameter isOfOther: whether it is of a server that a redirect led to. It is not this one's before several URLs
  ///   in a row lead there, as one may lead anywhere.
  func judged(
    _ failure: Failure, isOfOther: Bool, of id: UInt64, _ mirror: MirrorURL, _ claim: Claim,
    _ patience: ServerRests.Patience
  ) -> Failure {
    // It has been judged.
    if failure.rest != nil { return failure }
    let way = way(mirror.parts)
    if let failure = mistake(failure, isOfOther: isOfOther, of: way[0], claim) { return failure }
    guard let fault = ServerRests.Fault(failure, isOfOther, mirror, claim.text.request), let server = way.first else {
      // Whatever is wrong, the server answered.
      if failure.code.showsAnswer { answered(id, mirror) }
      return failure
    }
    let key = failure.code == .proxy ? failure.proxy.map { ServerRests.proxy($0) } ?? server : server
    if fault.cause == .asked, isAboutJob(claim, server) { return failure }
    let since = claim.history.attempts.deferredSince(by: mirror.parts.redacted).map(spool.moment)
    var random = HostRandom()
    let jitter = Double.random(in: 0...1, using: &random)
    guard let (until, isNew) = rests.failed(id, key, fault, running: running(server), at: now, jitter: jitter) else {
      guard fault.isOfOther, failure.isOfServer else { return failure }
      return deferred(failure, by: server, since, until: nil, patience)
    }
    if let since { rests.noteFailure(key, since: since) }
    if isNew { tellRest(key) }
    save(key)
    if fault.isOfOther { return deferred(failure, by: server, since, until: until, patience) }
    let isAway = rests.isAway(way, patience, at: now)
    return (isAway ? away(key) : failure).resting(seconds(until: until), isAway: isAway)
  }

  /// The same failure as a final one, if a person may have misspelled the server: it has never answered.
  private func mistake(_ failure: Failure, isOfOther: Bool, of server: String, _ claim: Claim) -> Failure? {
    guard expectsMistakes, !isOfOther, [.resolve, .connect, .tls].contains(failure.code),
      rests.answered(server) == nil, claim.text.journal.data.version == nil
    else { return nil }
    var failure = failure
    failure.isFinal = true
    if mistaken.count < 1000 { mistaken[server] = failure }
    return failure
  }

  /// The failure of a server that is not known by itself: it costs no attempt as long as the job is patient.
  private func deferred(
    _ failure: Failure, by server: String, _ since: Int64?, until end: Int64?, _ patience: ServerRests.Patience
  ) -> Failure {
    let waited = since.map { now - $0 } ?? 0
    let rest = end.map(seconds) ?? ServerRests.shortestSeconds
    guard waited > patience.milliseconds else { return failure.resting(rest, isAway: false) }
    let leads = "\(name(server)) leads to a server that has answered nobody for \(durationText(Int(waited / 1000)))"
    return Failure(.serverAway, "\(leads): \(failure.reason)").resting(rest, isAway: true)
  }

  /// Whether the server has answered others since it last put this job off, again and again.
  private func isAboutJob(_ claim: Claim, _ server: String) -> Bool {
    guard claim.history.attempts.deferrals >= RetryDecision.freeDeferrals, let answered = rests.answered(server),
      let last = claim.text.journal.attempts.lastFailure?.time
    else { return false }
    return answered > spool.moment(last)
  }

  /// What a job that failed waits for, beside its time: what may come back before.
  func awaited(after failure: Failure, of request: JobRequest) -> [String] {
    if failure.code == .noNetwork { return [ServerRests.network] }
    guard let rest = failure.rest else { return [] }
    let urls = (request.urls + [request.signature].compactMap { $0 }).compactMap { try? URLParts($0.text) }
    let keys = urls.flatMap(way)
    // What the server said to this job holds when it serves others again.
    return RetryDecision.asked(by: failure) > rest ? keys.map(ServerRests.gesture) : keys
  }

  // MARK: what a person hears, once for each outage

  private func tellRest(_ key: String) {
    guard let rest = rests.rests[key] else { return }
    let isNews = told[key].map { now - $0 >= Self.newsAfter } ?? true
    if told.count >= 1000 { told = [:] }
    told[key] = now
    let level = isNews ? Event.Level.warning : .info
    if ServerRests.isProxy(key) {
      return log(Event("proxy-failed", level, Fields().with("proxy", name(key)).with("reason", rest.reason)))
    }
    let facts = Fields().with("server", name(key)).with("code", rest.code)
      .with("seconds", Int(seconds(until: rest.until)))
    log(Event("server-rests", level, facts.with("reason", rest.reason)))
  }

  private func tellBack(_ key: String) {
    toldAway.remove(name(key))
    if ServerRests.isProxy(key) { return log(Event("proxy-back", .warning, Fields().with("proxy", name(key)))) }
    log(Event("server-back", .info, Fields().with("server", name(key))))
  }

  private func name(_ key: String) -> String { escaped(ServerRests.name(of: key)) }
}

/// The files in `servers/`, as this worker has seen or written them last.
@WorkerLoop private final class ServerNotes {
  private let files: ServerFiles
  private let log: @Sendable (Event) -> Void
  private var known: [FileName: ServerFiles.Seen] = [:]
  private var changes = DirectoryChange()
  private var nextLook: Int64 = 0
  private var hasFailed = false
  /// Files of others that were reported.
  private var foreign: Set<FileName> = []
  /// Milliseconds between two looks.
  private static let interval: Int64 = 2000

  init(_ spool: Spool, _ log: @escaping @Sendable (Event) -> Void) { (files, self.log) = (ServerFiles(spool), log) }

  /// - Returns: what has changed, by server; nil for one whose file is gone.
  func look(at now: Int64, isForced: Bool) -> [(String, ServerFiles.Seen?)] {
    guard isForced || now >= nextLook else { return [] }
    nextLook = now + Self.interval
    return orTell { () throws(SpoolError) in
      if changes.note(try files.stamp(), at: now) { return try readAll() }
      // A touch does not change the directory.
      var found: [ServerFiles.Seen] = []
      for (name, seen) in known where seen.note?.rests.isEmpty == false {
        if try files.modified(name) != seen.modified, let seen = try files.read(name) { found.append(seen) }
      }
      return found.compactMap { take($0) }
    } ?? []
  }

  private func readAll() throws(SpoolError) -> [(String, ServerFiles.Seen?)] {
    let all = try files.all()
    let names = Set(all.map(\.name))
    // Of too many files, each time others may be read.
    let gone = all.count < ServerFiles.most ? known.filter { !names.contains($0.key) } : [:]
    for name in gone.keys { known[name] = nil }
    return all.compactMap { take($0) } + gone.values.compactMap { $0.note.map { ($0.server, nil) } }
  }

  /// - Returns: nil if nothing has changed.
  private func take(_ seen: ServerFiles.Seen) -> (String, ServerFiles.Seen?)? {
    guard let note = seen.note else {
      if foreign.count < 1000, foreign.insert(seen.name).inserted {
        let reason = "servers/\(seen.name.display) is no file of a worker"
        log(Event("server-file-invalid", .warning, Fields().with("reason", reason)))
      }
      return nil
    }
    if let last = known[seen.name], last.note == note, last.modified == seen.modified { return nil }
    known[seen.name] = seen
    return (note.server, seen)
  }

  func save(_ note: ServerNote, of host: String) {
    let name = ServerFiles.name(of: note.server)
    let own = note.rests.first
    let former = known[name]?.note?.rest(of: host)
    orTell { () throws(SpoolError) in
      let seen = try files.save(note, of: host, isOfAll: (own ?? former).map { $0.host == nil } ?? false)
      // The rest of all hosts that is left is learned with the next look.
      known[name] = seen?.note?.rest(of: host) == own ? seen : nil
    }
  }

  /// A worker can do without these files, so their errors are only told.
  @discardableResult
  private func orTell<Result>(_ body: () throws(SpoolError) -> Result) -> Result? {
    do throws(SpoolError) {
      return try body()
    } catch {
      if !hasFailed { log(Event("no-servers", .info, Fields().with("reason", "\(error)"))) }
      hasFailed = true
      return nil
    }
  }
}

extension ServerRests.Fault {
  /// nil for a failure that says nothing against the server.
  init?(_ failure: Failure, _ isOfOther: Bool, _ mirror: MirrorURL, _ request: JobRequest) {
    let cause: ServerRests.Cause
    switch failure.code {
    case _ where isOfOther && failure.code != .proxy && failure.isOfServer: cause = .broken
    case .proxy, .resolve, .connect: cause = .unreachable
    case _ where failure.retryAfter != nil: cause = .asked
    // By ftp and sftp it says that this file could not be sent.
    case .http where failure.blame == .server && mirror.parts.scheme.hasBoundedRanges: cause = .asked
    case .http where failure.status ?? 0 >= 500: cause = .broken
    default: return nil
    }
    self.init(cause: cause, code: failure.label, reason: failure.reason)
    self.isOfOther = isOfOther && cause == .broken
    asked = failure.retryAfter.map { Int64(clamping: $0) }
    let hasOwnLogin = mirror.parts.hasLogin || mirror.parts.isPathSecret || !request.headers.isEmpty
    // A link that was made for one person has another query each time.
    let query = mirror.parts.isPathSecret ? nil : mirror.parts.query
    if cause == .broken || !hasOwnLogin { url = "\(mirror.parts.redacted)?\(query ?? "")".utf8.stableHash }
  }
}

extension Failure {
  /// Whether it is a server's, and not the file's.
  fileprivate var isOfServer: Bool { blame == .server || retryAfter != nil }

  /// The same, for as long as its server rests.
  fileprivate func resting(_ seconds: Int64, isAway: Bool) -> Failure {
    var failure = self
    (failure.rest, failure.isServerAway) = (seconds, isAway)
    return failure
  }
}
