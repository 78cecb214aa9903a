internal import Spool
internal import Transfer

/// Drops a job for each new entry of a standing order's list, and gives jobs that failed the links that the list has
/// now.
@WorkerLoop
struct OrderDrop {
  private let claim: Claim
  private let environment: JobEnvironment
  private let request: JobRequest

  init(_ claim: Claim, _ environment: JobEnvironment) {
    self.claim = claim
    self.environment = environment
    request = claim.text.request
  }

  /// What came of a list.
  struct Outcome {
    let new: NewEntries
    /// How many jobs were dropped. The other new entries have one already.
    let dropped: Int
    let relinked: Int
  }

  /// - Parameter lists: the URLs of the list.
  /// - Throws: ``SpoolError``.
  func drop(_ entries: [FeedEntry], lists: [URLParts]) async throws -> Outcome {
    let spool = claim.spool
    let checks = claim.text.journal.checks
    let known = checks.lastTime == nil ? nil : checks.seen
    let (order, standing, confirm) = (claim.job, request.standing, claim.confirmation)
    // A list may have a hundred thousand entries.
    var (new, names) = try await runBlocking { () throws(SpoolError) in
      let jobs = try OrderedJobs(spool, of: order)
      let new = NewEntries(entries, from: lists, order: standing, known: known) { jobs.state(of: $0, isOpen: $1) }
      return (new, SharedNames(entries, from: lists))
    }
    let there = try await filesThere(new.files)
    new.drop(there: there)
    let jobs = OrderJobs(request, as: order, names, hosts: lists.map(\.host))
    let texts = new.files.map { file in
      let job = jobs.job(for: file) { size($0) != nil }
      return (text: file.isInTheClear(besides: lists) ? JobText.offered(job.text) : job.text, name: job.name)
    }
    let relinked = new.relinked
    let (dropped, changed) = try await runBlocking { () throws(SpoolError) in
      let dropped = try spool.dropMissing(texts, confirm: confirm)
      if !relinked.isEmpty { try confirm() }
      var changed = 0
      for file in relinked where try Self.relink(file, of: order, lists, spool) { changed += 1 }
      return (dropped, changed)
    }
    return Outcome(new: new, dropped: dropped, relinked: changed)
  }

  private nonisolated static func relink(
    _ file: OfferedFile, of order: JobName, _ lists: [URLParts], _ spool: Spool
  ) throws(SpoolError) -> Bool {
    guard let shown = try? URLParts(file.urls[0]).redacted else { return false }
    let relinking = Relinking(
      to: file.urls, shownURL: shown, isSame: false, isOffered: file.isInTheClear(besides: lists)
    ) { JobPlan.output(of: $0) }
    let name = OrderJobs.name(of: order, file.key).fileName
    if case .relinked = try spool.relink(name, in: nil, relinking) { return true }
    return false
  }

  /// The keys of the files that a receipt names with the same URL, and that are in their places with that size: they
  /// are new by their identities alone, as after a move of the list to another host.
  private func filesThere(_ files: [OfferedFile]) async throws -> Set<String> {
    let found = files.compactMap { file in
      let path = OrderJobs.path(of: file, request)
      return size(path).map { (file: file, path: path, size: $0) }
    }
    if found.isEmpty { return [] }
    let (spool, root) = (claim.spool, OutputPath(found[0].path).flatMap { outputs(for: $0)?.location })
    return try await runBlocking { () throws(SpoolError) in
      let published = try spool.published(in: root, named: Set(found.map(\.path.exact)))
      let there = found.filter { file, path, size in
        !file.replaces
          && published[path.exact, default: []].contains(Published(link: file.link, size: UInt64(clamping: size)))
      }
      return Set(there.map(\.file.key))
    }
  }

  private func outputs(for path: OutputPath) -> CurrentOutputRoot? { try? environment.outputs(of: request, for: path) }

  /// The bytes of the file at an output; nil if there is none. If that cannot be seen, the job will.
  private func size(_ output: String) -> Int64? {
    guard let path = OutputPath(output), let outputs = outputs(for: path) else { return nil }
    do { return try outputs.opened().status(path)?.size } catch { return nil }
  }
}

/// The jobs that an order has dropped before.
struct OrderedJobs {
  private let spool: Spool
  private let order: JobName
  private let stuck: [String: Set<String>]

  /// - Throws: ``SpoolError``.
  init(_ spool: Spool, of order: JobName) throws(SpoolError) {
    (self.spool, self.order) = (spool, order)
    let names = OrderJobs.name(of: order, String(repeating: "0", count: FeedEntry.keyLength)).fileName.bytes
    stuck = try spool.stuckJobs(below: Array(names.dropLast(FeedEntry.keyLength)))
  }

  /// - Parameter isOpen: whether it was not done at the last check.
  func state(of key: String, isOpen: Bool) -> EntryJob {
    if let links = stuck[key] { return .stuck(links) }
    if !isOpen { return .underway }
    do {
      guard let place = try spool.place(of: OrderJobs.name(of: order, key)) else { return .gone }
      return place.directory == .done ? .done : .underway
    } catch {
      // The next check looks again.
      return .underway
    }
  }
}
