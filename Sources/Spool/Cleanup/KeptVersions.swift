internal import Glibc
internal import SystemPackage

/// What a subscription with `keep: N` has published: the last N versions or episodes stay, the others go with their
/// receipts (spool.5, SUBSCRIPTIONS).
///
/// A file goes only if it is exactly what its receipt says, and no other job has or wants the output. It goes before
/// its receipt: where a crash came in between, the receipt goes the next time.
package struct KeptVersions {
  package struct Outcome: Sendable {
    package let job: FileName
    package let receipt: Journal.Receipt
    package let size: UInt64
    /// Why it stays; nil if it was removed.
    package let reason: String?
  }

  private struct Version {
    let (path, name, status): (Path, FileName, FileStatus)
    let (receipt, output, verified): (Journal.Receipt, OutputPath, Journal.Verified)
    let time: Timestamp
    /// Less for a newer one. Times would say something else once a clock was wrong.
    let age: Int
    /// The subscription does not know yet that the job is done: without its receipt, it counts as cancelled.
    let isOpen: Bool

    func isIn(_ directory: String?) -> Bool { receipt.directory?.exact == directory?.exact }
  }

  private let spool: Spool
  private let subscription: JobText
  private var request: JobRequest { subscription.request }
  /// What its jobs' names begin with.
  private let prefix: [UInt8]
  /// Of one file whose versions are kept, the name that the newest has as well.
  private let current: OutputPath?
  private let output: (JobRequest) -> String?
  /// Files that are read before it is asked which jobs have them.
  private static let readAtOnce = 1000

  /// - Parameter job: one of the subscription's.
  /// - Parameter output: the path of a job's payload below its output root, as far as its text says it.
  /// - Returns: nil if the job is of no subscription, or of none that is wanted.
  package init?(
    _ spool: Spool, of job: JobName, where isWanted: (JobRequest) -> Bool = { $0.standing.keep != nil },
    output: @escaping (JobRequest) -> String?
  ) throws(SpoolError) {
    guard let text = try JobSearch(spool).subscription(of: job, where: isWanted) else { return nil }
    (self.spool, self.output, subscription) = (spool, output, text)
    prefix = Array(job.fileName.bytes.dropLast(FeedEntry.keyLength))
    let standing = text.request.standing
    current =
      standing.entries == .file && standing.keep ?? 1 > 1 ? output(text.request).flatMap { OutputPath($0) } : nil
  }

  /// When the versions of a file that were fetched so far were signed, the last time; nil if it is not known, or the
  /// job is of no such subscription.
  package static func lastSigned(_ spool: Spool, of job: JobName) throws(SpoolError) -> Timestamp? {
    let kept = try KeptVersions(spool, of: job) { request in
      request.standing.entries == .file && request.signature != nil
    } output: { _ in
      nil
    }
    guard let kept else { return nil }
    let signed = try kept.versions(besidesDamaged: false).map(\.verified.signed)
    let known = signed + [kept.subscription.journal.checks.signed]
    return known.compactMap { $0.flatMap { Timestamp($0) } }.max()
  }

  /// The newest first: the first of the list, or of one file the version that was seen last. They are what this
  /// subscription has seen: others of such a name are those of an earlier subscription, or a person's. A job that is
  /// done before its check has ended counts at the end of that check.
  /// - Parameter besidesDamaged: whether a receipt that cannot be read is left out. Its file stays then.
  private func versions(besidesDamaged: Bool = true) throws(SpoolError) -> [Version] {
    let seen = subscription.journal.checks.seen
    let places = Dictionary(zip(seen.map { $0.prefix(FeedEntry.keyLength) }, 0...), uniquingKeysWith: min)
    var found: [FileName: Version] = [:]
    func isLeftOut(_ error: SpoolError) -> Bool {
      error.isUnreadable || besidesDamaged && spool.concernsOneFile(error, in: .done)
    }
    func note(_ path: Path, _ name: FileName) throws(SpoolError) {
      guard found[name] == nil, JobName(name).map(FeedEntry.isKeyed) == true,
        name.bytes.count == prefix.count + FeedEntry.keyLength,
        name.bytes.starts(with: prefix),
        let status = try orNil(spool.system.statusIfPresent(spool.root, path), where: isLeftOut),
        let text = try orNil(spool.jobContents(path), where: isLeftOut)?.withUnsafeBytes({ JobText($0) }),
        let done = text.journal.publication.done, let time = done.time, let output = OutputPath(done.receipt.output),
        let place = places[String(decoding: name.bytes.dropFirst(prefix.count), as: UTF8.self)[...]]
      else { return }
      found[name] = Version(
        path: path, name: name, status: status, receipt: done.receipt, output: output, verified: done.verified,
        time: time, age: place, isOpen: seen[place].utf8.count > FeedEntry.keyLength)
    }
    for name in try spool.list(.done) { try note(Path(.done, name), name) }
    try Archive(spool).eachPath { (path, name) throws(SpoolError) in try note(path, name) }
    return found.values.sorted { $0.age < $1.age }
  }

  /// Has the newest version bear the subscription's own name, and removes those that are too many, the oldest first.
  /// - Parameter isStopped: asked between some files and the next, which have to be read.
  package func trim(isStopped: () -> Bool) throws(SpoolError) -> [Outcome] {
    var all = try versions()
    var outcomes: [Outcome] = []
    do throws(SpoolError) {
      // Another worker may have published a newer one meanwhile.
      for _ in 0..<3 {
        if try !name(all) { break }
        all = try versions()
      }
    } catch {
      // Such as on a file system without hard links.
      let reason = "it cannot bear the name of the file as well: \(error)"
      outcomes += all.prefix(1).map {
        Outcome(job: $0.name, receipt: $0.receipt, size: $0.verified.size, reason: reason)
      }
    }
    // What was published by the file's own name has been replaced.
    let isReplaced = all.first.map(isVersion) ?? false
    let kept = all.filter { !isReplaced || $0.output != current }.prefix(request.standing.keep ?? .max)
    var old = all.reversed().filter { version in !kept.contains { $0.path == version.path } }[...]
    while !old.isEmpty, !isStopped() {
      var read: [(Version, Result<Look, SpoolError>)] = []
      for version in old.prefix(Self.readAtOnce) where !isStopped() {
        read.append((version, Result { () throws(SpoolError) in try look(version) }))
      }
      old = isStopped() ? [] : old.dropFirst(read.count)
      // Hooks may take all files elsewhere: nothing is removed then, and the jobs need not be read for it.
      if read.allSatisfy({ isGone($0.1) }), !isAnyThere(kept) { continue }
      var holders = try holders(of: Set(read.flatMap { [[$0.0.receipt.output.exact], $0.0.receipt.place] }))
      for (version, look) in read {
        if let outcome = remove(version, look, &holders, kept) { outcomes.append(outcome) }
      }
    }
    return outcomes
  }

  private func isVersion(_ version: Version) -> Bool {
    current.map { PayloadName.isVersion(version.output.text, of: $0.text) } ?? false
  }

  private func root(of version: Version) throws(SpoolError) -> OutputRoot? {
    try orNil(OutputRoot(version.receipt.directory, spool: spool), on: .noSuchFileOrDirectory, .notDirectory)
  }

  /// Gives the newest version the name of the file as well, in place of an older one, or of what was there before it
  /// was published. What a person has put there since stays.
  private func name(_ all: [Version]) throws(SpoolError) -> Bool {
    guard let current, let newest = all.first, isVersion(newest), let root = try root(of: newest),
      let status = try root.status(newest.output), status.isRegular
    else { return false }
    let before = try root.status(current)
    if let there = before {
      if there.isSameFile(as: status) { return false }
      guard try root.isReplaceable(current, there) else { return false }
      var isOld = request.overwrite != false && there.changed <= newest.time.seconds
      for version in all where !isOld && version.isIn(newest.receipt.directory) && version.output != current {
        isOld = try root.status(version.output)?.isSameFile(as: there) ?? false
      }
      if !isOld { return false }
    }
    guard case .sound = try root.check(newest.receipt, newest.verified) else { return false }
    // What a person has put there while it was read stays.
    let now = try root.status(current)
    guard now?.inode == before?.inode, now?.stamp == before?.stamp else { return false }
    try root.name(newest.output, as: current, status)
    return true
  }

  private func isGone(_ look: Result<Look, SpoolError>) -> Bool {
    if case .success(.gone) = look { true } else { false }
  }

  /// As far as is known: an error of one says nothing of the others.
  private func isAnyThere(_ versions: some Sequence<Version>) -> Bool {
    versions.contains { (try? root(of: $0)?.status($0.output)) != nil }
  }

  private enum Look {
    case gone, sound(FileStatus)
    case changed(String)
  }

  private func look(_ version: Version) throws(SpoolError) -> Look {
    guard let root = try root(of: version), let status = try root.status(version.output) else { return .gone }
    if !status.isRegular { return .changed("it is no regular file any more") }
    switch try root.check(version.receipt, version.verified) {
    case .missing: return .gone
    case .changed(let mismatch): return .changed("it was changed since: \(mismatch.text)")
    case .unreadable(let error): throw error
    case .present, .sound: return .sound(status)
    }
  }

  /// Which jobs have an output, by it and its directory, or want it, by the output alone: whichever root they name.
  /// - Parameter outputs: only of these, because a spool may have a million receipts.
  /// - Throws: ``SpoolError``, also where a job cannot be read: it may want any.
  private func holders(of outputs: Set<[ExactText?]>) throws(SpoolError) -> [[ExactText?]: Set<Path>] {
    var found: [[ExactText?]: Set<Path>] = [:]
    func note(_ path: Path, _ text: JobText, isDone: Bool) {
      let publication = text.journal.publication
      let receipt = publication.receipt?.place
      let wanted = isDone ? [] : [publication.undelivered?.output, output(text.request)].map { $0.map { [$0.exact] } }
      for case let key? in [receipt] + wanted where outputs.contains(key) { found[key, default: []].insert(path) }
    }
    for directory in JobSearch.readingOrder where directory != .done {
      try JobSearch(spool).eachJob(in: directory) { note($0.path, JobText($0.bytes), isDone: false) }
    }
    // One damaged receipt, of whichever job, must not keep all that subscriptions have ever fetched.
    func noteReceipt(_ path: Path) throws(SpoolError) {
      let bytes = try orNil(spool.jobContents(path)) { error in
        error.errno != .permissionDenied && spool.concernsOneFile(error, in: .done)
      }
      bytes?.withUnsafeBytes { note(path, JobText($0), isDone: true) }
    }
    for name in try spool.list(.done) { try noteReceipt(Path(.done, name)) }
    try Archive(spool).eachPath { (path, _) throws(SpoolError) in try noteReceipt(path) }
    return found
  }

  /// Removes the file if it is this subscription's alone, and the receipt. Both wait until a check knows that the job
  /// is done.
  /// - Returns: nil if there is nothing to tell of a file.
  private func remove(
    _ version: Version, _ look: Result<Look, SpoolError>, _ holders: inout [[ExactText?]: Set<Path>],
    _ kept: ArraySlice<Version>
  ) -> Outcome? {
    if version.isOpen { return nil }
    let (receipt, directory) = (version.receipt, Result { () throws(SpoolError) in try root(of: version) })
    func outcome(_ reason: String? = nil) -> Outcome {
      Outcome(job: version.name, receipt: receipt, size: version.verified.size, reason: reason)
    }
    var result: Outcome?
    do throws(SpoolError) {
      // What another job has, such as a newer one, is that one's; what was there before is a person's.
      if version.output != current, !version.verified.isOthers, holders[[receipt.output.exact]] == nil,
        holders[receipt.place, default: []].subtracting([version.path]).isEmpty
      {
        switch try look.get() {
        // The directory of a disk that is not mounted is empty.
        case .gone: if !isAnyThere(kept.filter { $0.isIn(receipt.directory) }) { return nil }
        case .changed(let reason): result = outcome(reason)
        case .sound(let status):
          if try directory.get()?.remove(version.output, seen: status) != true { return nil }
          result = outcome()
        }
      }
      try spool.system.unlink(spool.root, version.path, of: version.status)
    } catch {
      // What concerns one file keeps no other from going.
      return outcome("\(error)")
    }
    holders[receipt.place]?.remove(version.path)
    return result
  }
}

extension JobSearch {
  /// The jobs that subscriptions do not know to be done: without their receipts they would count as cancelled, and come
  /// again when their links change.
  func openEntries() throws(SpoolError) -> Set<FileName> {
    var found: Set<FileName> = []
    for directory in Self.ofOrders {
      for name in try spool.list(directory) where try isStandingOrder(directory, name) {
        guard let order = directory == .cur ? ClaimName(name)?.job : JobName(name), let text = try job(directory, name)
        else { continue }
        for word in text.journal.checks.seen where word.utf8.count > FeedEntry.keyLength {
          found.insert(JobName(like: order.display, suffix: "-\(word.prefix(FeedEntry.keyLength))").fileName)
        }
      }
    }
    return found
  }

  /// The text of the subscription that has dropped a job, as the job's name says.
  /// - Parameter isWanted: whether more than its request is worth reading.
  /// - Returns: nil if there is none, or it is not wanted.
  package func subscription(of job: JobName, where isWanted: (JobRequest) -> Bool) throws(SpoolError) -> JobText? {
    guard FeedEntry.isKeyed(job) else { return nil }
    let key = "-" + String(decoding: job.fileName.bytes.suffix(FeedEntry.keyLength), as: UTF8.self)
    for directory in Self.ofOrders {
      for name in try spool.list(directory) {
        guard let order = directory == .cur ? ClaimName(name)?.job : JobName(name),
          JobName(like: order.display, suffix: key) == job, try isStandingOrder(directory, name, where: isWanted),
          let text = try self.job(directory, name)
        else { continue }
        return text
      }
    }
    return nil
  }
}
