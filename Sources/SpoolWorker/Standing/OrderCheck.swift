internal import Spool
internal import Transfer

/// A standing order is a claimed file like a job. Its attempt looks at its list, drops a job for each new entry, and
/// records that, instead of fetching a payload; then the order goes back to `standing`.
///
/// The jobs are durable before the record: after a crash between the two, the next check finds the same entries new,
/// and the jobs by their names.
@WorkerLoop struct OrderCheck {
  let attempt: Attempt
  private var claim: Claim { attempt.claim }
  private var environment: JobEnvironment { attempt.environment }
  private var checks: Journal.Checks { claim.text.journal.checks }

  init(_ attempt: Attempt) { self.attempt = attempt }

  func run() async throws -> AttemptEnd {
    let began = claim.spool.now()
    // What the jobs inherit goes for the list, too: header fields, time-outs, rates.
    let request = claim.text.request.bounded(by: environment.options)
    guard let every = request.standing.every else { throw Failure(.malformed, "a subscription needs `every:`") }
    if let failure = attempt.probation.failure(attempts: nil) { throw failure }
    if let expires = request.expires, expires <= began {
      throw Failure(.expired, "the subscription expired at \(expires)")
    }
    if environment.options.defaults.requiresSignature == true, request.signature == nil { throw Failure.unsigned }
    let mirrors = try MirrorURL.all(of: request, environment.options.protocols)
    try noteCheckStarted(mirrors)
    let before = checks
    let checked: Journal.Check
    var relinked = 0
    if let (answer, file, signer) = try await fetchSigned(request, mirrors) {
      defer { file.remove() }
      var list = try await entries(of: file, answer, mirrors, began)
      if let stopped = attempt.stopped { throw stopped }
      let drop = OrderDrop(claim, environment, mirrors, signedBy: signer?.name)
      let outcome = try await drop.drop(list.entries, from: list.isOfAskedURL ? mirrors.map(\.parts) : answer.bases)
      relinked = outcome.relinked
      list.problems.add(outcome.new.problems)
      checked = Journal.Check(
        entries: list.entries.count, new: outcome.dropped, version: answer.version, problems: list.problems,
        signed: isOfOneFile ? try await lastSigned() : signer?.mark)
      try write(checked, whole: checked, seen: outcome.new.seen, began)
    } else {
      checked = try await noteUnchanged(began)
    }
    let next = Self.next(after: began, every: every, now: claim.spool.now())
    try claim.park(until: next)
    let order = attempt.name
    if checked.problems.isNews(after: before.problems) {
      let problems = Fields().with("count", checked.problems.count).with("reason", checked.problems.text)
      attempt.log(Event("list-problems", .warning, job: order, problems))
    }
    let facts = Fields().with("entries", checked.entries).with("new", checked.new)
      .with("relinked", relinked > 0 ? relinked : nil).with("unchanged", checked.version == nil ? "yes" : nil)
    attempt.log(Event("checked", .info, job: order, facts.with("next", next)))
    // What a worker that died has left.
    await OldVersions(spool: claim.spool, log: environment.log, stop: attempt.hookStop).remove(after: like)
    var end = AttemptEnd(.checked, retry: next)
    end.hasDropped = checked.new + relinked > 0
    return end
  }

  /// What is in the list; of an order for one file, its version: the job for it replaces the last one.
  private func entries(
    of file: ScratchFile, _ answer: ListFetch.Answer, _ mirrors: [MirrorURL], _ began: Timestamp
  ) async throws -> ReadList {
    guard isOfOneFile else {
      let program = EntriesProgram(path: environment.options.entriesProgram, stop: attempt.hookStop)
      return try await program.read(file, claim.text.request.standing.entries, name: answer.name, in: claim.spool)
    }
    let named = answer.version.etag ?? answer.version.modified
    // It may go back to an earlier version.
    let after = checks.lastTime.map { "\($0) " } ?? ""
    var entry = FeedEntry(identity: after + (named ?? "\(began)"), date: began, urls: mirrors.map(\.url))
    entry.replaces = true
    var list = ReadList()
    list.entries = [entry]
    return list
  }

  /// Of one file, when the last version was signed: its receipts may be removed.
  private func lastSigned() async throws -> String? {
    let (spool, like) = (claim.spool, like)
    return try await runBlocking { try KeptVersions.lastSigned(spool, of: like) }.map { "\($0)" }
  }

  /// A name as its jobs have.
  private var like: JobName { OrderJobs.name(of: claim.job, String(repeating: "0", count: FeedEntry.keyLength)) }

  private var isOfOneFile: Bool { claim.text.request.standing.entries == .file }

  /// The time of the next check.
  nonisolated static func next(after began: Timestamp, every: Int, now: Timestamp) -> Timestamp {
    max(began + Int64(every), now + 1)
  }

  /// The server says that the list is the same.
  private func noteUnchanged(_ began: Timestamp) async throws -> Journal.Check {
    let before = checks
    let signed = isOfOneFile ? try await lastSigned() : before.signed
    let (spool, order) = (claim.spool, claim.job)
    let seen = try await runBlocking { () throws(SpoolError) in
      let jobs = try OrderedJobs(spool, of: order)
      return NewEntries.settled(before.seen) { jobs.state(of: $0, isOpen: $1) }
    }
    let check = Journal.Check(entries: before.entries, new: 0, version: nil)
    let whole = Journal.Check(
      entries: before.entries, new: 0, version: before.version, problems: before.problems, signed: signed)
    try write(check, whole: whole, seen: seen, began)
    return check
  }

  // MARK: the list, fetched by an attempt that may be stopped

  /// - Returns: the list, as far as its signature covers it; nil if it is unchanged.
  private func fetchSigned(_ request: JobRequest, _ mirrors: [MirrorURL]) async throws -> (
    ListFetch.Answer, ScratchFile, Signer?
  )? {
    do { return try await fetchPair(request, mirrors) } catch let failure as Failure
      where failure.code == .badSignature
    {
      // The list may have been replaced after it was fetched, and before its signature was.
      return try await fetchPair(request, mirrors)
    }
  }

  private func fetchPair(_ request: JobRequest, _ mirrors: [MirrorURL]) async throws -> (
    ListFetch.Answer, ScratchFile, Signer?
  )? {
    let (found, list) = try await fetchList(request, mirrors)
    guard let answer = found else { return nil }
    // A server that heeds no conditions names the last version again, and so may a mirror.
    if isOfOneFile, let known = checks.version, answer.version.hasValidators(of: known),
      mirrors.contains(where: { known.isOf(url: $0.url, format: .file) })
    {
      return nil
    }
    // The signature of a file is for its job.
    if request.signature == nil || isOfOneFile { return (answer, list, nil) }
    do {
      let (text, signer) = try await check(list, request)
      if text !== list { list.remove() }
      return (answer, text, signer)
    } catch {
      list.remove()
      throw error
    }
  }

  private func check(_ list: ScratchFile, _ request: JobRequest) async throws -> (ScratchFile, Signer) {
    let signature = try await attempt.fetchSignature(request)
    let (spool, stop) = (claim.spool, attempt.hookStop)
    let (text, signer) = try await runBlocking { try SignatureCheck(spool, stop).signed(list, signature) }
    do throws(Failure) {
      try signer.check(notBefore: checks.signed.flatMap { Timestamp($0) }, "the list was signed before the last one")
    } catch {
      text.remove()
      throw error
    }
    return (text, signer)
  }

  /// - Returns: the file that has the list, unless that is unchanged.
  private func fetchList(_ request: JobRequest, _ mirrors: [MirrorURL]) async throws -> (
    ListFetch.Answer?, ScratchFile
  ) {
    let file = try ScratchFile(claim.spool)
    let kind: ListFetch.Kind = isOfOneFile ? .file : request.signature == nil ? .list : .signedList
    // A list whose signature was not asked for has to be fetched for that.
    let known = kind != .signedList || checks.signed != nil ? checks.version : nil
    let context = AttemptContext(claim, environment, attempt: attempt.id, request)
    let fetch = ListFetch(kind, request, mirrors, context, ifChangedSince: known)
    attempt.transfer = fetch
    defer {
      attempt.account.fetched += fetch.fetched
      attempt.transfer = nil
    }
    do {
      if let stopped = attempt.stopped { throw stopped }
      return (try await fetch.run(into: file), file)
    } catch {
      // The fetch only knows that it was stopped; this attempt knows why.
      throw attempt.stopped ?? error
    }
  }

  private func noteCheckStarted(_ mirrors: [MirrorURL]) throws {
    guard let url = mirrors.first?.parts else { throw Failure(.malformed, "a subscription needs a URL") }
    let spool = claim.spool
    try claim.append(
      .started(
        spool.now(), attempt: attempt.account.number, worker: spool.owner, boot: spool.boot, mirror: 1,
        url: url.redacted, afterFreeze: claim.formerOwner == .mayWake))
    attempt.probation.begin(at: Host.current.awakeMilliseconds())
    let fields = Fields().with("attempt", attempt.account.number).with("at", 0).with("url", url.redacted)
    attempt.log(Event("started", .info, job: attempt.name, fields))
  }
}

/// The records of checks. If the entries have changed, or the journal has grown, the order's file is written anew: so
/// its length is bounded.
extension OrderCheck {
  /// Bytes of an order's file, apart from the keys of its entries, beyond which its journal begins anew.
  private static var longest: Int64 { 64 << 10 }
  private static var keyLength: Int64 { 40 }

  /// - Parameter whole: what a new file says, which also has what an unchanged list leaves as it was.
  /// - Parameter seen: as in ``Journal/Checks/seen``. An entry that has become a job changes it.
  private func write(_ check: Journal.Check, whole: Journal.Check, seen: [String], _ began: Timestamp)
    throws(SpoolError)
  {
    let isLong = claim.length > Self.longest + Int64(seen.count) * Self.keyLength
    if isLong || seen != checks.seen || whole.signed != checks.signed {
      try claim.rewrite(JobText.order(try claim.contents(), checked: began, whole, seen: seen))
    } else {
      try claim.append(.checked(began, check))
    }
  }
}
