internal import Spool
internal import SystemPackage
internal import Transfer

/// A job that a worker found and may run.
struct Candidate: Equatable {
  let name: FileName
  let origin: Directory
  /// Its mtime in seconds since the epoch, or the current time if the mtime is in the future.
  let modified: Int64
  /// When it was to be due, in seconds since the epoch: it may run before that, unless it has been postponed since.
  var knownDue: Int64?
  /// Seconds by which it counts as younger than it is: see ``SpoolReader``.
  var delay: Int64 = 0
  /// Those that its mtime has beyond the seconds.
  var nanoseconds = 0

  /// A pass would take one that may run before it is due for one that has to wait.
  func isFound(byPassOver directories: [Directory]) -> Bool { knownDue == nil && directories.contains(origin) }

  func isBefore(_ other: Candidate) -> Bool {
    let (left, right) = (modified + delay, other.modified + other.delay)
    if (left, nanoseconds) != (right, other.nanoseconds) { return (left, nanoseconds) < (right, other.nanoseconds) }
    // At the same time, shorter names first: a job before its `~2`, job-9 before job-10.
    let (name, otherName) = (name.bytes, other.name.bytes)
    return name.count == otherName.count ? name.lexicographicallyPrecedes(otherName) : name.count < otherName.count
  }
}

/// The parts of a candidate's text that the schedule needs.
struct Peek: Equatable {
  /// Scheme, host and port of its first URL, or `resolve` where a hook has to say it; nil for a job that opens no
  /// connection, such as a malformed one.
  let host: String?
  /// Its URLs: what is claimed may have others. See ``Claimer/Outcome/changed(_:)``.
  var urls: [JobRequest.Line] = []
  var firstURL: ReadURL?
  /// How many workers died during attempts of the job; 0 if it has already waited for other jobs.
  var deaths = 0
  /// Bytes that it still has to receive; nil if that is not known, or it needs none.
  var needed: UInt64?
  /// What it needs to fetch from each of its URLs; empty for one that may need no transfer, and so never waits for a
  /// server.
  var ways: [ServerRests.Way] = []
  /// When a person made it due, in milliseconds of the loop's clock; nil if nobody did. It need not wait for what
  /// failed before that.
  var wantedAt: Int64?
  /// See ``ServerRests/isAway(_:_:at:)``.
  var patience = ServerRests.Patience.endless
  /// ``JobPlan/rootAndOutput(of:)``
  var output: ExactText?
  var priority = Priority.normal
  var isAged = false

  /// The first of ``urls``, read: that takes as long as the rest of a look. A class, because candidates are copied.
  final class ReadURL: Sendable, Equatable {
    let parts: URLParts

    init(_ parts: URLParts) { self.parts = parts }

    // What it was read from counts.
    static func == (_: ReadURL, _: ReadURL) -> Bool { true }
  }
}

/// A candidate that was chosen to start.
struct Choice: Equatable {
  let candidate: Candidate
  let peek: Peek

  /// The server that it begins with, if it does not rest; empty for a job that opens no connection.
  var host: String { way.first ?? peek.host ?? "" }
  /// How it begins, as far as the schedule knows.
  var way: ServerRests.Way = []

  /// What it has in common with the jobs that it can wait behind.
  var queue: String {
    // A person's job must not wait behind those that do.
    if peek.wantedAt != nil { return "wanted \(candidate.name.display)" }
    if peek.ways.isEmpty { return "\(candidate.origin) \(peek.host ?? "")" }
    let servers = peek.ways.count == 1 ? peek.ways[0][0] : peek.ways.joined(separator: [","]).joined(separator: " ")
    // Nor one whose patience is over behind those that have more.
    return "\(servers) \(peek.patience.milliseconds)"
  }
}

/// Reads the directories that contain jobs in pieces, so that the first jobs start before the rest is read.
struct SpoolReader {
  enum Sighting {
    case candidate(Candidate)
    /// It is another worker's, at least until this second since the epoch.
    case held(Candidate, until: Int64)
    /// It is due at this time, in seconds since the epoch.
    case later(Int64)
    /// It is gone, or not a job.
    case nothing
  }

  private let spool: Spool
  private var streams: [Directory: DirectoryStream] = [:]

  init(_ spool: Spool) { self.spool = spool }

  mutating func begin(_ directory: Directory) throws(SpoolError) { streams[directory] = try spool.stream(directory) }

  mutating func abandon() { streams = [:] }

  /// - Returns: nil at the directory's end.
  mutating func next(_ directory: Directory) throws(SpoolError) -> FileName? {
    while let name = try streams[directory]?.next() { if !name.isIgnored { return name } }
    streams[directory] = nil
    return nil
  }

  func look(_ directory: Directory, _ name: FileName, at now: Timestamp) throws(SpoolError) -> Sighting {
    if directory == .partial, name.isData { return .nothing }
    let status: FileStatus
    do throws(SpoolError) {
      guard let found = try spool.status(directory, name) else { return .nothing }
      if try !Claims(spool).isDue(name, modified: found.modified, in: directory, at: now.seconds) {
        return .later(found.modified)
      }
      status = found
    } catch  where spool.concernsOneFile(error, in: directory) {
      // The claim reports it.
      return .candidate(Candidate(name: name, origin: directory, modified: 0))
    }
    // An order that is due takes little, and would otherwise wait behind each older job. A time in the future would put
    // the job after all jobs dropped until then.
    let modified = directory == .standing ? 0 : min(status.modified, now.seconds)
    // What has begun goes on before others begin.
    let delay = directory == .cur ? -modified : directory == .new || directory == .partial ? delay(of: name) : 0
    let candidate = Candidate(
      name: name, origin: directory, modified: modified, delay: delay,
      nanoseconds: modified == status.modified ? status.modifiedNanoseconds : 0)
    // Not even opened: on a network file system that would take several round trips, for each claim in each pass.
    if directory == .cur, let end = Leases(spool).endOfLease(of: name, status, now: now) {
      return .held(candidate, until: end)
    }
    return .candidate(candidate)
  }

  /// Where other hosts may share the spool, each worker has an order of its own for jobs of about the same age, so that
  /// they do not race for the same ones.
  private func delay(of name: FileName) -> Int64 {
    if spool.kind.isLocal { return 0 }
    return Int64((Array(spool.owner.text.utf8) + name.bytes).stableHash >> 32) % Self.spread
  }

  /// Seconds.
  static let spread: Int64 = 30
}

/// Reads claims in `cur/`, without standing still with a network file system.
@WorkerLoop final class ClaimReader {
  /// Milliseconds that the loop waits for a claim.
  static let patience: Int64 = 200
  /// Seconds after which a claim that could not be read is asked for again.
  static let pause: Int64 = 2

  private let spool: Spool
  private let late = LateAnswers<FileName, JobText?>()

  init(_ spool: Spool) { self.spool = spool }

  /// - Parameter patience: milliseconds that the loop may wait.
  /// - Returns: nil as long as the file system has not answered: ask again later. Else what the claim says; nil for one
  ///   that is gone or cannot be read.
  func read(_ claim: FileName, patience: Int64 = patience) -> JobText?? {
    // Threads cost more than a call that never waits for another host.
    if spool.kind.isLocal { return .some(Self.text(of: claim, in: spool)) }
    return late.answer(to: claim, patience: patience) { [spool] in Self.text(of: claim, in: spool) }
  }

  /// Who cannot read it, cannot do more with the error: the claim that follows reports it.
  private nonisolated static func text(of claim: FileName, in spool: Spool) -> JobText? {
    do throws(SpoolError) { return try JobSearch(spool).job(.cur, claim) } catch { return nil }
  }
}

/// Reads from a job's text what the schedule needs, in one go.
@WorkerLoop struct PeekReader {
  private let spool: Spool
  private let environment: JobEnvironment
  private let claims: ClaimReader
  private let began = LoopExecutor.milliseconds()

  init(_ spool: Spool, _ environment: JobEnvironment, _ claims: ClaimReader) {
    (self.spool, self.environment, self.claims) = (spool, environment, claims)
  }

  /// - Returns: nil for a claim that cannot be read yet.
  func peek(at candidate: Candidate) throws(SpoolError) -> Peek? {
    let found: JobText?
    if candidate.origin == .cur {
      guard let text = claims.read(candidate.name) else { return nil }
      found = text
    } else {
      found = try? JobSearch(spool).job(candidate.origin, candidate.name)
    }
    // If the job cannot be read or has no URL, the claim handles that.
    return try found.map { (text) throws(SpoolError) in try peek(candidate, text) } ?? Peek(host: nil)
  }

  /// - Parameter text: what the candidate's file says.
  func peek(_ candidate: Candidate, _ text: JobText) throws(SpoolError) -> Peek {
    do throws(SpoolError) { return try read(candidate, text) } catch
      where spool.concernsOneFile(error, in: candidate.origin)
    {
      // The claim reports it, if it finds the URLs that were looked at.
      return Peek(host: nil, urls: text.request.urls)
    }
  }

  private func read(_ candidate: Candidate, _ text: JobText) throws(SpoolError) -> Peek {
    let url = text.request.urls.first.flatMap { try? URLParts($0.text) }
    guard let host = Self.host(of: text.request, url) else { return Peek(host: nil, urls: text.request.urls) }
    // A dead worker's claim may need only its last move. If it needs more, its attempt waits for the server.
    let isOver = text.request.expires.map { $0 <= spool.now() } ?? false
    let isFetched = candidate.origin == .partial && text.journal.publication.awaitsDelivery
    let needsServer = candidate.origin != .cur && text.request.resolve == nil && !isOver && !isFetched
    let others = needsServer ? text.request.urls.dropFirst().compactMap { try? URLParts($0.text) } : []
    let parts = needsServer ? [url].compactMap(\.self) + others : []
    // A job that was dropped starts over, whatever its journal says.
    let isOrder = text.request.isStandingOrder
    return Peek(
      host: host, urls: text.request.urls, firstURL: url.map { Peek.ReadURL($0) }, deaths: try deaths(candidate, text),
      needed: isOrder ? nil : try needed(candidate, text), ways: parts.map { environment.way(to: $0) },
      wantedAt: wantedAt(candidate, text), patience: isOrder ? .endless : patience(candidate, text),
      output: isOrder ? nil : JobPlan.rootAndOutput(of: text.request, url),
      priority: isOrder ? .normal : priority(candidate, text),
      isAged: !isOrder && spool.now().seconds - candidate.modified >= Self.day)
  }

  private func wantedAt(_ candidate: Candidate, _ text: JobText) -> Int64? {
    guard candidate.origin == .partial, !environment.servers.rests.isEmpty,
      let planned = text.journal.attempts.lastFailure?["retry"].flatMap({ Timestamp($0) }),
      candidate.modified < planned.seconds
    else { return nil }
    return LoopExecutor.milliseconds() - (spool.now().seconds - candidate.modified) * 1000
  }

  private func patience(_ candidate: Candidate, _ text: JobText) -> ServerRests.Patience {
    // A drop may have kept an old time. The attempt knows better.
    let known = candidate.origin.takesNewJobs ? candidate.modified : text.journal.knownSince?.seconds
    return environment.patience(of: text.request, knownSince: known)
  }

  private func deaths(_ candidate: Candidate, _ text: JobText) throws(SpoolError) -> Int {
    if candidate.origin.takesNewJobs || hasWaited(candidate) { return 0 }
    let attempts = text.journal.attempts
    let all = attempts.deaths(askedBy: spool.owner)
    guard candidate.origin == .cur, let owner = ClaimName(candidate.name)?.owner else { return all }
    let deaths = Probation.counted(all, isByLease: !Leases(spool).sharesLocks(with: owner))
    guard deaths > 0, try Leases(spool).isOwnerFrozen(of: candidate.name) else { return deaths }
    return attempts.deaths(askedBy: spool.owner, isLastFrozen: true)
  }

  /// Jobs whose URL only the hook `resolve` knows count as of one server.
  private static func host(of request: JobRequest, _ url: URLParts?) -> String? {
    if request.urls.isEmpty { return request.resolve == nil ? nil : "resolve" }
    return url?.server
  }

  private static let day: Int64 = 86_400

  private func priority(_ candidate: Candidate, _ text: JobText) -> Priority {
    if candidate.origin == .urgent { return .high }
    let priority = text.priority(inheriting: environment.options.defaults)
    // A dead worker's claim may need only its last move.
    let needsMove = text.journal.attempts.endsInFailure || text.journal.publication.verified != nil
    return candidate.origin == .cur && needsMove ? min(priority, .normal) : priority
  }

  /// Whether the job has waited long enough for others to go first, even if there are always others: since this worker
  /// started, and since the last heartbeat of the worker that had the job.
  private func hasWaited(_ candidate: Candidate) -> Bool {
    let probation = environment.options.probation
    guard LoopExecutor.milliseconds() - began >= probation else { return false }
    return (spool.now().seconds - candidate.modified) * 1000 >= probation
  }

  /// Bytes that a job still needs, by its text and its journal. Also nil if it needs no space, because the claim will
  /// give it up or find that the payload exists.
  private func needed(_ candidate: Candidate, _ text: JobText) throws(SpoolError) -> UInt64? {
    // A dead worker's claim may need only its last move.
    guard environment.space.kept > 0, candidate.origin != .cur, let job = JobName(candidate.name), text.defect == nil
    else { return nil }
    let request = text.request.bounded(by: environment.options)
    if let expires = request.expires, expires <= spool.now() { return nil }
    // For a job that was dropped, the size in the journal may be that of another URL.
    guard let size = (candidate.origin.takesNewJobs ? nil : text.journal.data.version?.size) ?? request.expected.size
    else { return nil }
    guard let plan = try? JobPlan(request, protocols: environment.options.protocols) else { return nil }
    // If the output cannot be examined, the claim reports it.
    if request.expected.provesContent, request.overwrite != true {
      do { if try environment.outputs(of: plan).opened().status(plan.output) != nil { return nil } } catch {
        return nil
      }
    }
    let length = UInt64(clamping: try spool.status(.partial, job.part)?.size ?? 0)
    return size > length ? size - length : 0
  }
}
