package import Spool
internal import SystemPackage

/// Looks at a spool without leaving a trace: nothing is locked, written or touched. Jobs move meanwhile: what has gone when it is reached for counts
/// no more, and one on its way may be missed or counted twice.
package struct SnapshotReader {
  private let spool: Spool
  private let limit: Int
  private let now: Timestamp

  /// - Parameter limit: of how many jobs of each state to tell more than that they are there.
  package init(_ spool: Spool, limit: Int, now: Timestamp = .now()) {
    self.spool = spool
    self.limit = limit
    self.now = now
  }

  /// - Throws: ``SpoolError`` when a directory is gone, or cannot be read for another reason than a lack of permission.
  package func read() throws(SpoolError) -> SpoolSnapshot {
    var snapshot = SpoolSnapshot(location: spool.location, time: now)
    // In the order of a job's way. `cur/` a second time, for what came from `partial/` between the two.
    let held = try list(.hold, &snapshot)
    let waiting = try list(.new, &snapshot)
    let claims = try list(.cur, &snapshot)
    let partial = try list(.partial, &snapshot)
    let all = Set(claims)
    let running = claims + (try list(.cur, &snapshot).filter { !all.contains($0) })
    let failed = try list(.failed, &snapshot)
    let done = try list(.done, &snapshot)
    snapshot.unreadable = Array(Set(snapshot.unreadable)).sorted { $0.rawValue < $1.rawValue }

    for name in partial where name.isData {
      if let status = try status(.partial, name) { snapshot.stored &+= UInt64(clamping: status.size) }
    }
    let defaults = (try? spool.defaults()) ?? JobRequest()

    try addClaims(running, defaults, &snapshot)
    try addPartial(partial.filter { !$0.isData }, defaults, &snapshot)
    try addFailed(failed, defaults, &snapshot)
    try add(.paused, .hold, smallest(held, limit), defaults, &snapshot)
    snapshot.counts[.paused, default: 0] += max(0, held.count - limit)
    snapshot.counts[.waiting] = waiting.count
    snapshot.jobs[.waiting] = smallest(waiting, limit).map { JobStatus($0, .waiting) }
    snapshot.counts[.done] = done.count
    for name in done.prefix(Self.receiptsRead) {
      if try spool.job(.done, name)?.journal.receipt?.unproven != nil { snapshot.unproven += 1 }
    }
    return snapshot
  }

  /// Receipts that one look reads: there may be a million.
  package static let receiptsRead = 1000

  // MARK: listing

  private func list(_ directory: Directory, _ snapshot: inout SpoolSnapshot) throws(SpoolError) -> [FileName] {
    do throws(SpoolError) {
      return try spool.list(directory)
    } catch  where error.errno == .permissionDenied {
      snapshot.unreadable.append(directory)
      return []
    }
  }

  private func status(_ directory: Directory, _ name: FileName) throws(SpoolError) -> FileStatus? {
    do throws(SpoolError) {
      return try spool.status(directory, name)
    } catch  where error.errno == .permissionDenied {
      return nil
    }
  }

  private func smallest(_ names: [FileName], _ count: Int) -> [FileName] {
    first(count, of: names) { $0.bytes.lexicographicallyPrecedes($1.bytes) }
  }

  /// The first `count` in that order, without sorting all of them.
  private func first<Element>(_ count: Int, of all: [Element], by precedes: (Element, Element) -> Bool) -> [Element] {
    if all.count <= count { return all.sorted(by: precedes) }
    guard count > 0 else { return [] }
    var best = all.prefix(count).sorted(by: precedes)
    var more: [Element] = []
    // Sorted again whenever as many have come together as are wanted.
    for element in all.dropFirst(count) where precedes(element, best[count - 1]) {
      more.append(element)
      if more.count < count { continue }
      best = Array((best + more).sorted(by: precedes).prefix(count))
      more = []
    }
    return Array((best + more).sorted(by: precedes).prefix(count))
  }

  // MARK: by directory

  /// A claim is a running job's as long as its worker may be alive; else the job was interrupted.
  private func addClaims(_ names: [FileName], _ defaults: JobRequest, _ snapshot: inout SpoolSnapshot)
    throws(SpoolError)
  {
    var claims: [JobState: [(file: FileName, claim: ClaimName)]] = [:]
    for name in names {
      guard let claim = ClaimName(name), let status = try status(.cur, name) else { continue }
      claims[
        claim.isAlive(modified: status.modified, host: spool.owner.host, now: now) ? .running : .interrupted,
        default: []
      ].append((name, claim))
    }
    for (state, group) in claims {
      let sorted = group.sorted { $0.claim.job.fileName.bytes.lexicographicallyPrecedes($1.claim.job.fileName.bytes) }
      snapshot.counts[state, default: 0] += max(0, group.count - limit)
      for (file, claim) in sorted.prefix(limit) {
        guard var job = try details(.cur, file, claim.job.fileName, state, defaults) else { continue }
        job.worker = claim.shownOwner
        if state == .interrupted {
          job.problem = .init(
            code: "crashed", reason: job.worker.map { "its worker \($0) is gone" } ?? "it has no worker")
        }
        snapshot.counts[state, default: 0] += 1
        snapshot.jobs[state, default: []].append(job)
      }
    }
  }

  private func addPartial(_ names: [FileName], _ defaults: JobRequest, _ snapshot: inout SpoolSnapshot)
    throws(SpoolError)
  {
    var groups: [JobState: [(name: FileName, due: Int64)]] = [:]
    for name in names {
      guard let status = try status(.partial, name) else { continue }
      // A time of the next attempt that was set ahead when the job came here, and has come since, is a failure's as well. Only what was
      // never set ahead, or touched, has to be read to know: of a great many jobs these are the fewest.
      let isAhead = status.modified > min(now.seconds, status.changed)
      let state: JobState = isAhead ? .retrying : try isInterrupted(name) ? .interrupted : .retrying
      let isDue = Spool.isDue(status.modified, at: now.seconds)
      groups[state, default: []].append((name, isDue ? min(status.modified, now.seconds) : status.modified))
    }
    for (state, group) in groups {
      snapshot.counts[state, default: 0] += max(0, group.count - limit)
      let next = first(limit, of: group) { ($0.due, $0.name.bytes.count) < ($1.due, $1.name.bytes.count) }
      for (name, due) in next {
        guard var job = try details(.partial, name, name, state, defaults) else { continue }
        job.next = Timestamp(seconds: due)
        snapshot.counts[state, default: 0] += 1
        snapshot.jobs[state, default: []].append(job)
      }
    }
  }

  /// The latest failures first. Data set aside and records of what is no job are no jobs themselves.
  private func addFailed(_ names: [FileName], _ defaults: JobRequest, _ snapshot: inout SpoolSnapshot)
    throws(SpoolError)
  {
    let all = Set(names)
    var jobs: [(name: FileName, modified: Int64, isRegular: Bool)] = []
    for name in names {
      if name.isData, !all.contains(name.record) { continue }
      if let subject = name.recordSubject, all.contains(subject) { continue }
      guard let status = try status(.failed, name) else { continue }
      jobs.append((name, status.modified, status.isRegular))
    }
    snapshot.counts[.failed, default: 0] += max(0, jobs.count - limit)
    let latest = first(limit, of: jobs) { ($0.modified, $1.name.bytes.count) > ($1.modified, $0.name.bytes.count) }
    for job in latest {
      // What is no regular file cannot hold its own record.
      let file = all.contains(job.name.record) ? job.name.record : job.name
      guard let status = try details(.failed, file, job.name, .failed, defaults) else { continue }
      snapshot.counts[.failed, default: 0] += 1
      snapshot.jobs[.failed, default: []].append(status)
    }
  }

  private func add(
    _ state: JobState, _ directory: Directory, _ names: [FileName], _ defaults: JobRequest,
    _ snapshot: inout SpoolSnapshot
  )
    throws(SpoolError)
  {
    for name in names {
      guard let job = try details(directory, name, name, state, defaults) else { continue }
      snapshot.counts[state, default: 0] += 1
      snapshot.jobs[state, default: []].append(job)
    }
  }

  // MARK: one job

  /// nil when the job has moved on; its name alone when this user may not read it.
  private func details(
    _ directory: Directory, _ file: FileName, _ name: FileName, _ state: JobState, _ defaults: JobRequest
  ) throws(SpoolError) -> JobStatus? {
    do throws(SpoolError) {
      guard let text = try spool.job(directory, file) else {
        // Gone, or no regular file.
        return try spool.status(directory, file) == nil ? nil : JobStatus(name, state)
      }
      let data = try status(.partial, FileName(name.bytes + Array(".part".utf8))).map {
        (size: UInt64(clamping: $0.size), modified: $0.modified)
      }
      return JobReading(text: text, defaults: defaults, data: data, now: now).status(name, state)
    } catch  where error.errno == .permissionDenied || error.errno == .tooManySymbolicLinkLevels {
      return JobStatus(name, state)
    }
  }

  /// Whether the last of `failed:` and `interrupted:` is the latter. Looks for the line alone, because there may be many such jobs.
  private func isInterrupted(_ name: FileName) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      guard let bytes = try spool.contents(Path(.partial, name), limit: Spool.maximumJobFile) else { return false }
      return Self.endsInInterruption(bytes)
    } catch  where error.errno == .permissionDenied || error.errno == .tooManySymbolicLinkLevels {
      return false
    }
  }

  static func endsInInterruption(_ bytes: [UInt8]) -> Bool {
    let (interrupted, failed) = (Array("interrupted: ".utf8), Array("failed: ".utf8))
    guard var end = bytes.lastIndex(of: 0x0A) else { return false }
    while true {
      let start = bytes[..<end].lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
      if bytes[start..<end].starts(with: interrupted) { return true }
      if start == 0 || bytes[start..<end].starts(with: failed) { return false }
      end = start - 1
    }
  }
}

extension FileName {
  /// What `NAME.record` is about; nil for other names.
  fileprivate var recordSubject: FileName? {
    let suffix = FileName.recordSuffix
    return bytes.suffix(suffix.count) == suffix[...] ? FileName(Array(bytes.dropLast(suffix.count))) : nil
  }
}
