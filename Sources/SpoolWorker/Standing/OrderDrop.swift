internal import Spool
internal import SystemPackage
internal import Transfer

/// Drops a job for each new entry of a standing order's list, and gives jobs that failed the links that the list has
/// now.
struct OrderDrop: Sendable {
  private let spool: Spool
  private let order: JobName
  private var request: JobRequest
  /// The order's own URLs.
  private let lists: [URLParts]
  private let known: [String]?
  private let confirm: @Sendable () throws(SpoolError) -> Void
  /// The worker's own output root.
  private let directory: String?

  /// - Parameter signer: who has signed the list; nil if its signature was not asked for.
  @WorkerLoop init(_ claim: Claim, _ environment: JobEnvironment, _ mirrors: [MirrorURL], signedBy signer: String?) {
    lists = mirrors.map(\.parts)
    (spool, order, request, confirm) = (claim.spool, claim.job, claim.text.request, claim.confirmation)
    request.signedBy = signer
    let checks = claim.text.journal.checks
    known = checks.lastTime == nil ? nil : checks.seen
    directory = environment.outputs.location
  }

  /// On a thread of its own, because a list may have a hundred thousand entries.
  /// - Parameter bases: what their URLs may be relative to.
  func drop(_ entries: [FeedEntry], from bases: [URLParts]) async throws -> (
    new: NewEntries, dropped: Int, relinked: Int
  ) {
    try await runBlocking { () throws(SpoolError) in try dropHere(entries, bases) }
  }

  private func dropHere(_ entries: [FeedEntry], _ bases: [URLParts]) throws(SpoolError)
    -> (new: NewEntries, dropped: Int, relinked: Int)
  {
    let known = try OrderedJobs(spool, of: order)
    // Most lists lead nowhere else, and each URL is resolved once.
    let own = bases.map(\.place.exact) == lists.map(\.place.exact) ? nil : lists
    var new = NewEntries(entries, from: bases, of: own, order: request.standing, known: self.known) {
      known.state(of: $0, isOpen: $1)
    }
    let root = root()
    new.drop(there: try filesThere(new.files, new.sharedNames, root))
    let jobs = OrderJobs(request, as: order, new.sharedNames, hosts: lists.map(\.host))
    let texts = new.files.map { file in
      let job = jobs.job(for: file) { Self.size($0, root) != nil }
      let text = file.isInTheClear(besides: lists) ? JobText.offered(job.text) : job.text
      return (text: JobText.ofList(request.urls[0].text, text), name: job.name)
    }
    let dropped = try Drops(spool).dropMissing(texts, confirm: confirm)
    if !new.relinked.isEmpty { try confirm() }
    var kept: Set<String> = []
    for file in new.relinked where try !relink(file) { kept.insert(file.key) }
    new.keepLinks(of: kept)
    return (new, dropped, new.relinked.count - kept.count)
  }

  private func relink(_ file: OfferedFile) throws(SpoolError) -> Bool {
    guard let shown = try? URLParts(file.urls[0]).redacted else { return false }
    let relinking = Relinking(
      to: file.urls, shownURL: shown, isSame: false, isOffered: file.isInTheClear(besides: lists)
    ) { JobPlan.output(of: $0) }
    let name = OrderJobs.name(of: order, file.key).fileName
    do throws(SpoolError) {
      if case .relinked = try Steering(spool).relink(name, in: nil, relinking) { return true }
    } catch  where error.errno == .textFileBusy {
      // The next check tries again.
    }
    return false
  }

  /// The keys of the files that a receipt names with the same URL, and that are in their places with that size: they
  /// are new by their identities alone, as after a move of the list to another host. By a digest the job itself sees
  /// whether the file that is there is the same. Another query may be another token, or another file: only a date from
  /// before that file was there tells.
  private func filesThere(_ files: [OfferedFile], _ shared: Set<ExactText>, _ root: OutputRoot?) throws(SpoolError)
    -> Set<String>
  {
    let found = files.compactMap { file in
      let path = OrderJobs.path(of: file, request)
      return Self.size(path, root).map { (file: file, path: path, size: $0) }
    }
    if found.isEmpty { return [] }
    let published = try JobSearch(spool).published(in: root?.location, named: Set(found.map(\.path.exact)))
    let there = found.filter { file, path, size in
      !file.replaces && !file.expected.provesContent
        && published[path.exact, default: []].contains { done in
          guard FeedEntry.link(done.url) == file.link, done.size == UInt64(clamping: size),
            file.expected.mismatch(size: done.size) == nil
          else { return false }
          if file.urls.contains(where: { $0.exact == done.url.exact }) { return true }
          guard let date = file.date, let time = done.time else { return false }
          return date <= time && !shared.contains(file.name.exact)
        }
    }
    return Set(there.map(\.file.key))
  }

  /// What outputs are relative to; nil if that cannot be seen. The jobs will see it.
  private func root() -> OutputRoot? {
    do throws(SpoolError) {
      let named = try request.root.map { line throws(SpoolError) in try NamedRoots(spool).target(of: line.text) }
      return try OutputRoot(named ?? directory, spool: spool)
    } catch {
      return nil
    }
  }

  /// The bytes of the file at an output; nil if there is none, or it cannot be seen.
  private static func size(_ output: String, _ root: OutputRoot?) -> Int64? {
    guard let path = OutputPath(output) else { return nil }
    do throws(SpoolError) { return try root?.status(path)?.size } catch { return nil }
  }
}

/// The jobs that an order has dropped before.
struct OrderedJobs {
  private let spool: Spool
  private let order: JobName
  private let stuck: [String: Set<String>]

  init(_ spool: Spool, of order: JobName) throws(SpoolError) {
    (self.spool, self.order) = (spool, order)
    let names = OrderJobs.name(of: order, String(repeating: "0", count: FeedEntry.keyLength)).fileName.bytes
    stuck = try JobSearch(spool).stuckJobs(below: Array(names.dropLast(FeedEntry.keyLength)))
  }

  /// - Parameter isOpen: whether it was not done at the last check.
  func state(of key: String, isOpen: Bool) -> EntryJob {
    if let links = stuck[key] { return .stuck(links) }
    if !isOpen { return .underway }
    do {
      let name = OrderJobs.name(of: order, key)
      if let place = try JobSearch(spool).place(of: name) { return place.directory == .done ? .done : .underway }
      return try Archive(spool).contains(name.fileName) ? .done : .gone
    } catch {
      // The next check looks again.
      return .underway
    }
  }
}

/// The jobs that a standing order makes of new entries. Pure but for the question which files exist.
struct OrderJobs {
  /// The order's own keys, without those of `defaults`, which its jobs inherit by themselves.
  private let request: JobRequest
  private let name: JobName
  private let shared: Set<ExactText>
  private let hosts: [String]

  /// - Parameter hosts: the hosts of the order's own URLs.
  init(_ request: JobRequest, as name: JobName, _ shared: Set<ExactText>, hosts: [String]) {
    (self.request, self.name, self.shared) = (request, name, shared)
    self.hosts = hosts.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
  }

  /// The job that fetches a file.
  /// - Parameter exists: whether there is a file of this path below the output root.
  func job(for file: OfferedFile, exists: (String) -> Bool) -> (text: String, name: JobName) {
    var job = request
    (job.standing, job.signature) = (StandingOrder(), request.standing.entries == .file ? request.signature : nil)
    job.urls = file.urls.map { .init(text: $0, number: 0) }
    job.expected = file.expected
    if file.replaces { job.overwrite = job.overwrite ?? true }
    job.output = .init(text: output(file, mayReplace: job.overwrite == true, exists), number: 0)
    job.headers = boundHeaders
    return (job.text, Self.name(of: name, file.key))
  }

  /// The name of the job for an entry.
  static func name(of order: JobName, _ key: String) -> JobName { JobName(like: order.display, suffix: "-\(key)") }

  /// Where a file goes if nothing else is there.
  static func path(of file: OfferedFile, _ request: JobRequest) -> String {
    request.outputText(named: file.name) ?? file.name
  }

  /// The path of the payload: the file's name below the order's directory. If another entry or file has it, the entry's
  /// key makes it another one. With a digest, a file that exists is the same, or an older version; so is another entry
  /// of a path that the list states, but not of a name that URLs give.
  private func output(_ file: OfferedFile, mayReplace: Bool, _ exists: (String) -> Bool) -> String {
    var path = Self.path(of: file, request)
    if request.standing.entries == .file, request.standing.keep ?? 1 > 1, let date = file.date {
      path = PayloadName.version(of: path, at: date)
    }
    let isShared = shared.contains(file.name.exact)
    if mayReplace || file.expected.provesContent && (file.isNamed || !isShared) { return path }
    return isShared || exists(path) ? PayloadName.marked(path, with: file.key) : path
  }

  /// The list says which hosts its files are on. The order's header fields are for the list's own host.
  private var boundHeaders: [HeaderLine] {
    request.headers.flatMap { line in line.host != nil ? [line] : hosts.compactMap { line.bound(to: $0) } }
  }
}
