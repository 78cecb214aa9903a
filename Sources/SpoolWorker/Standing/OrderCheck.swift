internal import Spool

/// A standing order is a claimed file like a job. Its attempt looks at its list, drops a job for each new entry, and
/// records that, instead of fetching a payload; then the order goes back to `standing`.
///
/// The jobs are durable before the record: after a crash between the two, the next check finds the same entries new,
/// and the jobs by their names.
extension Attempt {
  func checkOrder() async throws -> AttemptEnd {
    let began = claim.spool.now()
    // What the jobs inherit goes for the list, too: header fields, time-outs, rates.
    let request = claim.text.request.bounded(by: environment.options)
    guard let every = request.standing.every else { throw Failure(.malformed, "a standing order needs `every:`") }
    if let failure = probation.failure(attempts: nil) { throw failure }
    if let expires = request.expires, expires <= began { throw Failure(.expired, "the order expired at \(expires)") }
    let mirrors = try MirrorURL.all(of: request, environment.options.protocols)
    let (list, file) = try await fetchList(request, mirrors)
    let record = OrderRecord(claim: claim, began: began)
    let before = claim.text.journal.checks
    let checked: Journal.Check
    var relinked = 0
    switch list {
    case .unchanged:
      checked = try record.writeUnchanged(seen: try await settled(before.seen))
    case .fetched(let version, let name):
      let program = EntriesProgram(path: environment.options.entriesProgram, stop: hookStop)
      var list = try await program.read(file, request.standing.entries, name: name, in: claim.spool)
      if let stopped { throw stopped }
      let outcome = try await OrderDrop(claim, environment).drop(list.entries, lists: mirrors.map(\.parts))
      relinked = outcome.relinked
      list.problems.add(outcome.new.problems)
      checked = try record.write(
        list.entries.count, outcome.new, dropped: outcome.dropped, version, problems: list.problems)
    }
    let next = OrderSchedule.next(after: began, every: every, now: claim.spool.now())
    let order = name
    try claim.park(until: next)
    if checked.problems.isNews(after: before.problems) {
      let problems = Fields().with("count", checked.problems.count).with("reason", checked.problems.text)
      log(Event("list-problems", .warning, job: order, problems))
    }
    log(
      Event(
        "checked", .info, job: order,
        Fields().with("entries", checked.entries).with("new", checked.new)
          .with("relinked", relinked > 0 ? relinked : nil)
          .with("unchanged", checked.version == nil ? "yes" : nil).with("next", next)))
    return AttemptEnd(checkedUntil: next, hasDropped: checked.new + relinked > 0)
  }

  /// What is remembered of a list that has not changed.
  private func settled(_ seen: [String]) async throws -> [String] {
    let (spool, order) = (claim.spool, claim.job)
    return try await runBlocking { () throws(SpoolError) in
      let jobs = try OrderedJobs(spool, of: order)
      return NewEntries.settled(seen) { jobs.state(of: $0, isOpen: $1) }
    }
  }
}
