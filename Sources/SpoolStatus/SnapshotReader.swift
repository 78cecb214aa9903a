package import Spool
internal import SystemPackage

/// Reads a spool without changing it: it locks, writes and touches nothing. Jobs move meanwhile, so one may be missed
/// or counted twice; a file that has gone before it is opened is left out.
package struct SnapshotReader {
  private let spool: Spool
  private let limit: Int
  private let receipts: Int
  private let now: Timestamp

  /// - Parameters:
  ///   - limit: the maximum number of jobs of each state to read; the others are only counted.
  ///   - receipts: the maximum number of receipts to read.
  ///   - now: by the clock of the file system; nil for what is known of it.
  package init(_ spool: Spool, limit: Int, receipts: Int = receiptsRead, now: Timestamp? = nil) {
    self.spool = spool
    self.limit = limit
    self.receipts = receipts
    self.now = now ?? spool.now()
  }

  /// - Throws: ``SpoolError`` when a directory is gone, or cannot be read for another reason than a lack of permission.
  package func read() throws(SpoolError) -> SpoolSnapshot {
    var snapshot = SpoolSnapshot(location: spool.location, time: now)
    // In the order in which jobs move. `cur/` is read a second time for jobs that came from `partial/` meanwhile.
    let orders = try list(.standing, &snapshot)
    let paused = try list(.hold, &snapshot)
    let waiting = try list(.new, &snapshot)
    let urgent = try list(.urgent, &snapshot)
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
    let workers = try workers(of: spool, now: now)
    (snapshot.workers, snapshot.seesWorkers) = (workers ?? [], workers != nil)
    let defaults = (try? spool.defaults()) ?? JobRequest()

    try addOrders(orders, spool, limit: limit, &snapshot)
    try addClaims(running, defaults, &snapshot)
    try addPartial(partial.filter { !$0.isData }, defaults, &snapshot)
    try addFailed(failed, defaults, &snapshot)
    try add(.paused, .hold, smallest(paused, limit), defaults, &snapshot)
    snapshot.counts[.paused, default: 0] += max(0, paused.count - limit)
    snapshot.counts[.waiting] = urgent.count + waiting.count
    let data = Set(partial.lazy.filter(\.isData).map(\.dataOwner))
    let begun = data.isEmpty ? [] : data.intersection(urgent + waiting)
    addWaiting(smallest(urgent, limit), smallest(waiting, limit), begun: begun, defaults, &snapshot)
    snapshot.counts[.done] = done.count
    for name in done.prefix(receipts) {
      if try spool.job(.done, name)?.journal.publication.receipt?.unproven != nil { snapshot.unproven += 1 }
    }
    if receipts > 0 { snapshot.recent = try recent(done, in: spool) }
    snapshot.free = spool.freeSpace()
    snapshot.explain()
    return snapshot
  }

  /// How many receipts are read: there may be a million.
  package static let receiptsRead = 1000

  private func addWaiting(
    _ urgent: [FileName], _ new: [FileName], begun: Set<FileName>, _ defaults: JobRequest,
    _ snapshot: inout SpoolSnapshot
  ) {
    let jobs = (urgent.map { JobStatus($0, .waiting, in: .urgent) } + new.map { JobStatus($0, .waiting) }).prefix(limit)
    let reading = WaitingReading(spool: spool, defaults: defaults, begun: begun, now: now)
    snapshot.jobs[.waiting] = jobs.prefix(Self.waitingRead).map(reading.details) + jobs.dropFirst(Self.waitingRead)
    snapshot.unreadBegun = begun.subtracting(jobs.prefix(Self.waitingRead).map(\.name)).count
  }

  /// How many waiting jobs' texts are read.
  private static let waitingRead = 1000

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

  /// The first `count` elements in that order, without sorting all of them.
  func first<Element>(_ count: Int, of all: [Element], by precedes: (Element, Element) -> Bool) -> [Element] {
    if all.count <= count { return all.sorted(by: precedes) }
    guard count > 0 else { return [] }
    var best = all.prefix(count).sorted(by: precedes)
    var more: [Element] = []
    // Candidates are collected, and merged whenever there are `count` of them.
    for element in all.dropFirst(count) where precedes(element, best[count - 1]) {
      more.append(element)
      if more.count < count { continue }
      best = Array((best + more).sorted(by: precedes).prefix(count))
      more = []
    }
    return Array((best + more).sorted(by: precedes).prefix(count))
  }

  // MARK: by directory

  /// A claimed job is running if its worker may be alive. Otherwise it was interrupted.
  private func addClaims(_ names: [FileName], _ defaults: JobRequest, _ snapshot: inout SpoolSnapshot)
    throws(SpoolError)
  {
    var claims: [JobState: [(file: FileName, claim: ClaimName)]] = [:]
    for name in names {
      guard let claim = ClaimName(name), let status = try status(.cur, name) else { continue }
      claims[
        claim.isAlive(modified: status.modified, in: spool, now: now) ? .running : .interrupted,
        default: []
      ].append((name, claim))
    }
    for (state, group) in claims {
      let sorted = group.sorted { $0.claim.job.fileName.bytes.lexicographicallyPrecedes($1.claim.job.fileName.bytes) }
      snapshot.counts[state, default: 0] += max(0, group.count - limit)
      for (file, claim) in sorted.prefix(limit) {
        guard var job = try details(.cur, file, claim.job.fileName, state, defaults, &snapshot) else { continue }
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
      // After a failure the time of modification is set ahead, to the next attempt. It is then later than the time of
      // change, even when the attempt has become due. Only the few other files have to be read.
      let isAhead = status.modified > min(now.seconds, status.changed)
      let state: JobState = isAhead ? .retrying : try isInterrupted(name) ? .interrupted : .retrying
      let isDue = Spool.isDue(status.modified, at: now.seconds)
      groups[state, default: []].append((name, isDue ? min(status.modified, now.seconds) : status.modified))
    }
    for (state, group) in groups {
      snapshot.counts[state, default: 0] += max(0, group.count - limit)
      let next = first(limit, of: group) { ($0.due, $0.name.bytes.count) < ($1.due, $1.name.bytes.count) }
      for (name, due) in next {
        guard var job = try details(.partial, name, name, state, defaults, &snapshot) else { continue }
        job.next = Timestamp(seconds: due)
        snapshot.counts[state, default: 0] += 1
        snapshot.jobs[state, default: []].append(job)
      }
    }
  }

  /// Adds the latest failures first. Data that was set aside and records of other entries do not count as jobs.
  private func addFailed(_ names: [FileName], _ defaults: JobRequest, _ snapshot: inout SpoolSnapshot)
    throws(SpoolError)
  {
    let all = Set(names)
    // Of a long name, a record's has only the first bytes.
    let records = Set(names.map(\.record))
    var jobs: [(name: FileName, modified: Int64, isRegular: Bool)] = []
    for name in names {
      if name.isData, !all.contains(name.record) { continue }
      if records.contains(name) { continue }
      guard let status = try status(.failed, name) else { continue }
      jobs.append((name, status.modified, status.isRegular))
    }
    snapshot.counts[.failed, default: 0] += max(0, jobs.count - limit)
    let latest = first(limit, of: jobs) { ($0.modified, $1.name.bytes.count) > ($1.modified, $0.name.bytes.count) }
    for job in latest {
      // The record of an entry that is not a regular file is in a separate file.
      let file = all.contains(job.name.record) ? job.name.record : job.name
      guard let status = try details(.failed, file, job.name, .failed, defaults, &snapshot) else { continue }
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
      guard let job = try details(directory, name, name, state, defaults, &snapshot) else { continue }
      snapshot.counts[state, default: 0] += 1
      snapshot.jobs[state, default: []].append(job)
    }
  }

  // MARK: one job

  /// Reads one job. Returns nil if it has moved on, or if it is a standing order, which is added to the snapshot; and
  /// only its name if this user may not read it.
  private func details(
    _ directory: Directory, _ file: FileName, _ name: FileName, _ state: JobState, _ defaults: JobRequest,
    _ snapshot: inout SpoolSnapshot
  ) throws(SpoolError) -> JobStatus? {
    do throws(SpoolError) {
      guard let text = try spool.job(directory, file) else {
        // It is gone, or no regular file.
        return try spool.status(directory, file) == nil ? nil : JobStatus(name, state, in: directory)
      }
      if text.request.isStandingOrder {
        snapshot.add(OrderStatus(name, OrderStatus.State(state), text, next: nil))
        return nil
      }
      let data = try status(.partial, name.data).map {
        (size: UInt64(clamping: $0.size), modified: $0.modified)
      }
      return JobReading(text: text, defaults: defaults, data: data, now: now).status(name, state, in: directory)
    } catch  where error.isUnreadable {
      return JobStatus(name, state, in: directory)
    }
  }

  /// Whether the job's last end of an attempt is `interrupted:`, not `failed:`. Only searches for these lines instead
  /// of parsing the job, because there may be many such jobs.
  private func isInterrupted(_ name: FileName) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      guard let bytes = try spool.jobContents(Path(.partial, name)) else { return false }
      return JournalScan.endsInInterruption(bytes)
    } catch  where error.isUnreadable {
      return false
    }
  }
}
