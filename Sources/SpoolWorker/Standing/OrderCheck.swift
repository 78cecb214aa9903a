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
    let checked: Journal.Check
    switch list {
    case .unchanged:
      checked = try record.writeUnchanged()
    case .fetched(let version):
      let program = EntriesProgram(path: environment.options.entriesProgram, stop: hookStop)
      let entries = try await program.read(file, request.standing.entries, in: claim.spool)
      if let stopped { throw stopped }
      let (new, dropped) = try await OrderDrop(claim, environment).drop(entries, lists: mirrors.map(\.parts))
      checked = try record.write(entries.count, new, dropped: dropped, version)
    }
    let next = OrderSchedule.next(after: began, every: every, now: claim.spool.now())
    let order = name
    try claim.park(until: next)
    log(
      Event(
        "checked", .info, job: order,
        Fields().with("entries", checked.entries).with("new", checked.new)
          .with("unchanged", checked.version == nil ? "yes" : nil).with("next", next)))
    return AttemptEnd(checkedUntil: next, hasDropped: checked.new > 0)
  }
}
