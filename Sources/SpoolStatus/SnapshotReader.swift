package import Spool
internal import SystemPackage

/// Reads a spool without changing it: it locks, writes and touches nothing. Jobs move meanwhile, so one may be missed
/// or counted twice; a file that has gone before it is opened is left out.
package final class SnapshotReader {
  private let spool: Spool
  private let limit: Int
  /// A spool may have a hundred thousand paused jobs, and people look each second.
  private static let countedRead = 1000
  private let receipts: Int
  private let now: Timestamp
  private let defaults: JobRequest
  private var snapshot: SpoolSnapshot

  /// - Parameters:
  ///   - limit: the maximum number of jobs of each state to read, but for those that run; the others are only counted.
  ///   - receipts: the maximum number of receipts to read.
  ///   - now: by the clock of the file system; nil for what is known of it.
  package init(_ spool: Spool, limit: Int, receipts: Int = receiptsRead, now: Timestamp? = nil) {
    (self.spool, self.limit, self.receipts) = (spool, limit, receipts)
    self.now = now ?? spool.now()
    defaults = (try? spool.defaults()) ?? JobRequest()
    snapshot = SpoolSnapshot(location: spool.location, time: self.now)
  }

  /// - Throws: ``SpoolError`` when a directory is gone, or cannot be read for another reason than a lack of permission.
  package func read() throws(SpoolError) -> SpoolSnapshot {
    snapshot.perHost = defaults.servers.perHost
    snapshot.patience = defaults.patience ?? JobRequest.defaultPatience
    // In the order in which jobs move. `cur/` is read a second time for jobs that came from `partial/` meanwhile.
    let orders = try list(.standing)
    let paused = try list(.hold)
    let waiting = try list(.new)
    let urgent = try list(.urgent)
    let claims = try list(.cur)
    let partial = try list(.partial)
    let all = Set(claims)
    let running = claims + (try list(.cur).filter { !all.contains($0) })
    let failed = try list(.failed)
    let done = try list(.done)
    snapshot.unreadable = Array(Set(snapshot.unreadable)).sorted { $0.rawValue < $1.rawValue }

    for name in partial where name.isData {
      if let status = try status(.partial, name) { snapshot.stored &+= UInt64(clamping: status.size) }
    }
    let workers = try readWorkers()
    (snapshot.workers, snapshot.seesWorkers) = (workers ?? [], workers != nil)

    try addOrders(orders)
    try addClaims(running)
    try addPartial(partial.filter { !$0.isData }, besides: Set(running.compactMap { ClaimName($0)?.job.fileName }))
    try addFailed(failed)
    let read = first(limit, of: paused, by: <)
    for name in read { if let job = try details(.hold, name, name, .paused) { snapshot.add(job) } }
    try count(Set(paused).subtracting(read), .paused, in: .hold)
    snapshot.counts[.waiting] = urgent.count + waiting.count
    let data = Set(partial.lazy.filter(\.isData).map(\.dataOwner))
    let begun = data.isEmpty ? [] : data.intersection(urgent + waiting)
    addWaiting(first(limit, of: urgent, by: <), first(limit, of: waiting, by: <), begun: begun)
    snapshot.counts[.done] = done.count
    for name in done.prefix(receipts) {
      let text = try orNil(JobSearch(spool).job(.done, name), where: \.isUnreadable)
      if text?.journal.publication.receipt?.unproven != nil { snapshot.unproven += 1 }
    }
    if receipts > 0 { snapshot.recent = try recent(done) }
    snapshot.free = spool.freeSpace()
    // None if this user may not read their files.
    snapshot.add(try orNil(ServerFiles(spool).all(), on: .permissionDenied)?.flatMap(ServerStatus.all) ?? [])
    snapshot.explain()
    return snapshot
  }

  /// How many receipts are read: there may be a million.
  package static let receiptsRead = 1000

  private func addWaiting(_ urgent: [FileName], _ new: [FileName], begun: Set<FileName>) {
    let jobs = (urgent.map { JobStatus($0, .waiting, in: .urgent) } + new.map { JobStatus($0, .waiting) }).prefix(limit)
    let read = jobs.prefix(Self.waitingRead).map { waiting($0, begun) }
    snapshot.jobs[.waiting] = read + jobs.dropFirst(Self.waitingRead)
    snapshot.unreadBegun = begun.subtracting(read.map(\.name)).count
  }

  private static let waitingRead = 1000

  // MARK: listing

  private func list(_ directory: Directory) throws(SpoolError) -> [FileName] {
    do throws(SpoolError) {
      return try spool.list(directory)
    } catch  where error.errno == .permissionDenied {
      snapshot.unreadable.append(directory)
      return []
    }
  }

  private func status(_ directory: Directory, _ name: FileName) throws(SpoolError) -> FileStatus? {
    try orNil(spool.status(directory, name), on: .permissionDenied)
  }

  /// The first `count` elements in that order, without sorting all of them.
  private func first<Element>(_ count: Int, of all: [Element], by precedes: (Element, Element) -> Bool) -> [Element] {
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

  private func latest(_ count: Int, of files: [(name: FileName, modified: Int64)]) -> [FileName] {
    first(count, of: files) { ($0.modified, $1.name.bytes.count) > ($1.modified, $0.name.bytes.count) }.map(\.name)
  }

  /// Counts those that are not read any further, the first ``Self/countedRead`` each as a job or as a standing order.
  private func count(_ names: some Sequence<FileName>, _ state: JobState, in directory: Directory) throws(SpoolError) {
    for (index, name) in names.enumerated() {
      if index < Self.countedRead, try JobSearch(spool).isStandingOrder(directory, name) {
        snapshot.orderCount += 1
      } else {
        snapshot.counts[state, default: 0] += 1
      }
    }
  }

  // MARK: by directory

  /// A claimed job is running if its worker may be alive. Otherwise it was interrupted.
  private func addClaims(_ names: [FileName]) throws(SpoolError) {
    var claims: [JobState: [(file: FileName, claim: ClaimName, status: FileStatus)]] = [:]
    for name in names {
      guard let claim = ClaimName(name), let status = try status(.cur, name) else { continue }
      let isAlive = claim.isAlive(status, in: spool, now: now)
      claims[isAlive ? .running : .interrupted, default: []].append((name, claim, status))
    }
    // What a worker has said of that is some seconds old.
    let counts = Dictionary(
      claims[.running, default: []].compactMap { $0.claim.shownOwner }.map { ($0.exact, 1) }, uniquingKeysWith: +)
    for (index, worker) in snapshot.workers.enumerated() where !snapshot.unreadable.contains(.cur) {
      snapshot.workers[index].report?.runs = counts[worker.name.exact] ?? 0
    }
    for (state, group) in claims {
      let sorted = group.sorted { $0.claim.job.fileName < $1.claim.job.fileName }
      // All that run are read: their rates are summed up.
      let limit = state == .running ? group.count : limit
      try count(sorted.dropFirst(limit).map(\.file), state, in: .cur)
      for (file, claim, status) in sorted.prefix(limit) {
        guard var job = try details(.cur, file, claim.job.fileName, state) else { continue }
        job.worker = claim.shownOwner
        if state == .interrupted {
          job.problem = .init(
            code: "crashed", reason: job.worker.map { "its worker \($0) is gone" } ?? "it has no worker")
          if let owner = claim.owner, let end = Leases(spool).endOfLease(of: file, status, now: now) {
            let left = shortDuration(end - now.seconds)
            job.waits = WaitReason(.lease, "taken over in \(left), when the lease of \(escaped(owner.host)) ends")
          }
        }
        snapshot.add(job)
      }
    }
  }

  private func addPartial(_ names: [FileName], besides running: Set<FileName>) throws(SpoolError) {
    var groups: [JobState: [(name: FileName, due: Int64)]] = [:]
    for name in names {
      guard let status = try status(.partial, name) else { continue }
      // What touch(1) makes there while the job runs is none.
      if status.size == 0, running.contains(name) { continue }
      // After a failure the time of modification is set ahead, to the next attempt. It is then later than the time of
      // change, even when the attempt has become due. Only the few other files have to be read.
      let isAhead = status.modified > min(now.seconds, status.changed)
      let state: JobState = isAhead ? .retrying : try isInterrupted(name) ? .interrupted : .retrying
      let isDue = Claims.isDue(status.modified, at: now.seconds)
      groups[state, default: []].append((name, isDue ? min(status.modified, now.seconds) : status.modified))
    }
    for (state, group) in groups {
      snapshot.counts[state, default: 0] += max(0, group.count - limit)
      let next = first(limit, of: group) { ($0.due, $0.name.bytes.count) < ($1.due, $1.name.bytes.count) }
      for (name, due) in next {
        guard var job = try details(.partial, name, name, state) else { continue }
        job.next = Timestamp(seconds: due)
        snapshot.add(job)
      }
    }
  }

  /// Adds the latest failures first. Data that was set aside and records of other entries do not count as jobs.
  private func addFailed(_ names: [FileName]) throws(SpoolError) {
    let leftovers = try JobSearch(spool).leftovers(in: names)
    var jobs: [(name: FileName, modified: Int64)] = []
    for name in names where !leftovers.contains(name) {
      guard let status = try status(.failed, name) else { continue }
      jobs.append((name, status.modified))
    }
    let latest = latest(limit, of: jobs)
    try count(Set(jobs.map(\.name)).subtracting(latest), .failed, in: .failed)
    for name in latest {
      // Of what is no job, the record is in a separate file.
      let isNoJob = leftovers.contains(name.record) ? try JobSearch(spool).record(of: name) != nil : false
      guard let status = try details(.failed, isNoJob ? name.record : name, name, .failed) else { continue }
      snapshot.add(status)
    }
  }

  private func addOrders(_ names: [FileName]) throws(SpoolError) {
    snapshot.orderCount += max(0, names.count - limit)
    for name in first(limit, of: names, by: <) {
      do throws(SpoolError) {
        guard let status = try spool.status(.standing, name), let text = try JobSearch(spool).job(.standing, name)
        else { continue }
        let isDue = try Claims(spool).isDue(name, modified: status.modified, in: .standing, at: now.seconds)
        let next = isDue ? now : Timestamp(seconds: status.modified)
        snapshot.add(OrderStatus(name, .waiting, text, next: next, inode: status.inode))
      } catch  where error.isUnreadable {
        snapshot.add(OrderStatus(name, .waiting))
      }
    }
  }

  /// How many receipts are shown, and how many are looked at for that: there may be a million, and to ask for the time
  /// of so many takes seconds.
  private static let recentShown = 5
  private static let recentLookedAt = 20_000

  private func recent(_ done: [FileName]) throws(SpoolError) -> [DoneStatus]? {
    guard done.count <= Self.recentLookedAt else { return nil }
    var times: [(name: FileName, modified: Int64)] = []
    for name in done {
      guard let status = try status(.done, name), status.isRegular else { continue }
      times.append((name, status.modified))
    }
    var found: [DoneStatus] = []
    for name in latest(Self.recentShown, of: times) {
      let bytes = try spool.readableContents(Path(.done, name))
      if let status = bytes?.withUnsafeBytes({ DoneStatus(name, $0) }) { found.append(status) }
    }
    return found
  }

  private func readWorkers() throws(SpoolError) -> [WorkerStatus]? {
    try orNil(WorkerFiles(spool).all(), on: .permissionDenied)?.map { worker in
      WorkerStatus(
        name: escaped(worker.owner.text), isAlive: Leases(spool).isAlive(worker.owner, beat: worker.beat, now: now),
        beat: Timestamp(seconds: worker.beat), report: worker.report)
    }
  }

  // MARK: one job

  /// Reads one job. Returns nil if it has moved on, or if it is a standing order, which is added to the snapshot; and
  /// only its name if this user may not read it.
  private func details(
    _ directory: Directory, _ file: FileName, _ name: FileName, _ state: JobState
  ) throws(SpoolError) -> JobStatus? {
    do throws(SpoolError) {
      guard let text = try JobSearch(spool).job(directory, file) else {
        // It is gone, or no regular file.
        return try spool.status(directory, file) == nil ? nil : JobStatus(name, state, in: directory)
      }
      let inode = try status(directory, directory == .cur ? file : name)?.inode
      if text.request.isStandingOrder {
        snapshot.add(OrderStatus(name, state, text, inode: inode))
        return nil
      }
      let data = try status(.partial, name.data).map { (size: UInt64(clamping: $0.size), modified: $0.modified) }
      var job = JobReading(text: text, defaults: defaults, data: data, now: now).status(name, state, in: directory)
      job.inode = inode
      return job
    } catch  where error.isUnreadable {
      return JobStatus(name, state, in: directory)
    }
  }

  /// Whether the job's last end of an attempt is `interrupted:`, not `failed:`. Only searches for these lines instead
  /// of parsing the job, because there may be many such jobs.
  private func isInterrupted(_ name: FileName) throws(SpoolError) -> Bool {
    try spool.readableContents(Path(.partial, name)).map(JournalScan.endsInInterruption) ?? false
  }

  /// A job in `new` or `urgent` with what its text says; as it is if it has moved, or this user may not read it.
  /// - Parameter begun: the jobs that have data: a person has released them or tries them again.
  private func waiting(_ job: JobStatus, _ begun: Set<FileName>) -> JobStatus {
    var job = job
    if job.directory == .urgent { job.priority = .high }
    do throws(SpoolError) {
      guard let status = try spool.status(job.directory, job.name), status.isRegular,
        let bytes = try spool.jobContents(Path(job.directory, job.name))
      else { return job }
      job.inode = status.inode
      let text = bytes.withUnsafeBytes { JobText($0) }
      if job.directory != .urgent { job.priority = text.priority(inheriting: defaults) }
      job.target = JobTarget(text.request)
      // Data of another user is not this job's: anybody may drop a job of its name, with any journal.
      if begun.contains(job.name), let data = try spool.status(.partial, job.name.data), data.owner == status.owner {
        let size = UInt64(clamping: data.size)
        job.bytes = size
        job.total = JobReading(text: text, defaults: defaults, data: (size, data.modified), now: now).total
      }
      let isYoung = now.seconds - status.modified < FileStatus.settlingTime
      if isYoung || bytes.last != 0x0A && !text.tornTailIsJournal { job.waits = doubt(bytes) }
    } catch {}
    return job
  }

  /// Why a file that is cut, or has changed a moment ago, may not be complete. A process that has it open is not seen
  /// from here.
  private func doubt(_ bytes: [UInt8]) -> WaitReason? {
    let isUnsettled = !spool.kind.leaseShowsAllWriters && !JobText.saysComplete(bytes)
    let doubt: Unfinished? =
      bytes.isEmpty ? .empty : bytes.last != 0x0A ? .lacksNewline : isUnsettled ? .unsettled : nil
    return doubt.map { WaitReason(.unfinished, $0.reason) }
  }
}
