internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SpoolWorker
internal import SystemPackage

struct Wait: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "wait", abstract: "Waits until jobs have come to their ends.",
    discussion: """
      For scripts, Makefiles and clusters: add jobs, wait for them, use the files. It looks at the spool once a second \
      and changes nothing, so it waits through kills, takeovers and pauses. A worker has to run, or cron.

        spoolrun wait a.bin b.bin && make

      Exit status: 0 all are done; 1 one was given up, or is gone; 75 the time is over.
      """)

  @Option(help: ArgumentHelp("Wait for at most this long, such as 2h. (default: without end)", valueName: "time"))
  var timeout: String?

  @Flag(help: "Wait until no job waits or runs. Paused jobs and subscriptions do not count.") var all = false

  @OptionGroup var spool: SpoolOption

  @Argument(
    help: ArgumentHelp(
      "Jobs, as name, its beginning, a pattern such as 'a*', or directory/name; or their files, as name or path.",
      valueName: "name"), completion: JobNameCompletion.kind) var names: [String] = []

  func validate() throws {
    _ = try seconds(of: "--timeout", timeout)
    try GestureOptions.check(names, isForMany: all)
  }

  func run() throws {
    try NamedSpool.refuse(among: names, of: "wait", spool)
    let end = timeout.flatMap { duration($0) }.map { Host.current.milliseconds() + Int64($0) * 1000 }
    let spools = try self.spool.openAll(for: .reading, having: all ? .anything : .jobs)
    let jobs =
      try all
      ? spools.map { ($0, nil) } : Self.jobs(MeantJobs.by(names, in: spools, Directory.ofJobs), spools, until: end)
    try JobsWaitedFor.wait(for: jobs, until: end, timeout: timeout)
  }

  /// The jobs of these names. Of a name that no job has, the one whose output it is, below the output root or by the
  /// path of the file.
  private static func jobs(
    _ meant: [MeantJobs], _ spools: [Spool], until end: Int64?
  ) throws -> [(Spool, [FileName]?)] {
    try ExitStatus.reporting("wait") {
      var jobs: [(Spool, [FileName]?)] = meant.map { ($0.spool, $0.names) }
      var files: [(index: Int, name: ExactText, place: ExactText, last: Set<ExactText>)] = []
      for (index, one) in meant.enumerated() where one.directory ?? .files == .files {
        if try one.isAnyThere() { continue }
        let name = String(decoding: one.name.bytes, as: UTF8.self)
        let place = path(name)
        files.append((index, name.exact, place.exact, [lastName(name), lastName(place)]))
      }
      for spool in spools where !files.isEmpty {
        let ownRoot = path("\(spool.location)/\(Directory.files.rawValue)")
        func note(_ found: FoundJob) -> Bool {
          if let end, Host.current.milliseconds() >= end { return true }
          let (receipt, asked) = (found.text.journal.publication.receipt, found.text.request)
          guard let output = receipt?.output ?? JobPlan.output(of: asked) else { return false }
          // There may be a million: only these are looked at in the file system.
          let last = lastName(output)
          guard files.contains(where: { $0.last.contains(last) }) else { return false }
          var root = receipt?.directory ?? ownRoot
          if receipt == nil, let named = asked.root { root = (try? NamedRoots(spool).target(of: named.text)) ?? root }
          let place = path("\(root)/\(output)").exact
          files.removeAll { file in
            guard output.exact == file.name || place == file.place else { return false }
            jobs[file.index] = (spool, [found.place.job])
            return true
          }
          return files.isEmpty
        }
        // Those that are not at their ends first, and those that were given up last.
        let directories: [Directory] = [.new, .urgent, .cur, .partial, .cur, .hold, .done, .failed]
        _ = try spool.unlessGone(JobSearch(spool).firstJob(in: directories, where: note))
      }
      return jobs
    }
  }

  private static func lastName(_ path: String) -> ExactText { (path.split(at: "/").last ?? "").exact }

  /// An absolute path without links, as far as it exists: the file may still have to come. The text itself where the
  /// current directory is gone, or its path is not UTF-8.
  private static func path(_ text: String) -> String {
    let (there, rest) = existingPart(of: text)
    guard let real = try? realPath(there) else { return text }
    if rest.isEmpty { return real }
    return (real == "/" ? "" : real) + (rest.begins(with: "/") ? "" : "/") + rest
  }
}

/// Jobs that have not come to their ends.
struct JobsWaitedFor {
  private let spool: Spool
  /// nil for all.
  private var left: [Awaited]?
  private var isSettled = false
  private var isOver = false
  private var areDone = true
  /// What was known before of files of a get.
  private let former: GetRecords.Receipts

  private struct Awaited {
    var name: FileName
    /// Its file when it was last seen; nil if it was not. A worker may copy it to another one.
    var inode: UInt64?
    /// The files of other jobs that had the name, perhaps with a number, when this one was seen beside one of them:
    /// its end has another name than theirs.
    var older: Set<UInt64>?
    /// Whether the archive had a receipt of the name when this one was seen before its end: that of an earlier life.
    var wasArchived: Bool?
    /// Not seen at the last look: it may have moved meanwhile.
    var isMissed = false
  }

  private init(_ spool: Spool, _ names: [FileName]?) throws(SpoolError) {
    (self.spool, left) = (spool, names?.map { Awaited(name: $0) })
    former = try OwnSpools.receipts(of: spool)
  }

  /// - Parameter jobs: those of each spool; nil for all.
  /// - Parameter end: when the time is over, which is as long as `timeout` says.
  static func wait(
    for jobs: [(spool: Spool, names: [FileName]?)], until end: Int64? = nil, timeout: String? = nil
  ) throws {
    try ExitStatus.reporting("wait") {
      for (spool, names) in jobs {
        for name in names ?? [] where try spool.unlessGone(JobSearch(spool).isOrder(name)) == true {
          throw ExitStatus.refusal("\(name.display) is a subscription, which has no end", by: "wait")
        }
      }
      var all = try jobs.map { try JobsWaitedFor($0.spool, $0.names) }
      // The first look may miss a job that moves, or take one that is gone for such a one.
      for looks in 1... {
        for index in all.indices where !all[index].isOver { all[index].isOver = try all[index].look() }
        let waiting = all.filter { !$0.isOver }.map(\.description)
        if waiting.isEmpty { break }
        if let end, Host.current.milliseconds() >= end {
          let status = all.allSatisfy(\.areDone) ? ExitStatus.waiting : .givenUp
          throw status.after("\(waiting.joined(separator: ", ")) after \(timeout ?? "")")
        }
        if looks == 2 { for job in all where !job.isOver { try MissingWorker.tell(of: job.spool) } }
        sleep(1)
      }
      if !all.allSatisfy(\.areDone) { throw ExitStatus.givenUp.code }
    }
  }

  private var description: String {
    guard let left else { return "jobs still wait or run" }
    return left.count == 1 ? "\(escaped(left[0].name.bytes)) is not done" : "\(left.count) jobs are not done"
  }

  /// - Returns: whether all have come to their ends.
  private mutating func look() throws(SpoolError) -> Bool {
    guard let jobs = left else { return try lookForAny() }
    var waiting: [Awaited] = []
    for var job in jobs {
      switch try end(of: &job) {
      case .done: break
      case .failed:
        tell(job.name, "was given up: `\(ShellWords.command("explain", job.name, of: spool.location))` says why")
      case .gone: tell(job.name, "no such job in \(escaped(spool.location)), or no more")
      case nil: waiting.append(job)
      }
    }
    left = waiting
    return waiting.isEmpty
  }

  private enum End { case done, failed, gone }

  /// - Returns: nil as long as the job waits, runs or moves. Of several jobs of one name, the last one counts.
  private func end(of job: inout Awaited) throws(SpoolError) -> End? {
    guard let name = JobName(job.name) else { return .gone }
    var ends: [JobPlace] = []
    do throws(SpoolError) {
      ends = try places(of: &job, name)
      if ends.contains(where: { !$0.hasEnded }) {
        if job.wasArchived == nil { job.wasArchived = try Archive(spool).contains(job.name) }
        job.isMissed = false
        return nil
      }
    } catch  where spool.isBesideFiles && error.errno == .noSuchFileOrDirectory {}
    // One that failed is newer than a receipt: a job does not run by the name of one that failed.
    if ends.contains(where: { $0.directory == .failed }) { return .failed }
    if !ends.isEmpty { return .done }
    if try hasLeftReceipt(job.name) { return .done }
    if job.wasArchived != true, try Archive(spool).contains(job.name) { return .done }
    defer { job.isMissed = true }
    return job.isMissed ? .gone : nil
  }

  /// Where the job is. If it has not been seen, or another file has taken the place of its own: where it may be.
  private func places(of job: inout Awaited, _ name: JobName) throws(SpoolError) -> [JobPlace] {
    let search = JobSearch(spool)
    var all = try search.settledPlaces(of: name)
    func own() -> JobPlace? { all.first { $0.inode == job.inode || job.inode == nil && !$0.hasEnded } }
    // It may have a number now.
    if job.older != nil, own() == nil { all = try search.namesakes(of: name) }
    let others = all.filter { job.older?.contains($0.inode) != true }
    guard let found = own() ?? others.first(where: { !$0.hasEnded }) else { return others }
    if found.hasEnded { return [found] }
    if found.job != job.name { (job.name, job.wasArchived) = (found.job, nil) }
    job.inode = found.inode
    if job.older == nil, all.count > 1 { all = try search.namesakes(of: name) }
    if all.count > 1 { job.older = (job.older ?? []).union(all.map(\.inode)).subtracting([found.inode]) }
    return [found]
  }

  /// The last command of a get takes its spool away when all is done, and leaves what the receipts say.
  private func hasLeftReceipt(_ name: FileName) throws(SpoolError) -> Bool {
    guard let receipt = try OwnSpools.receipts(of: spool)[name] else { return false }
    return receipt.time != former[name]?.time
  }

  private func isAnyJob(in directories: [Directory]) throws(SpoolError) -> Bool {
    try spool.unlessGone(JobSearch(spool).isAnyJob(in: directories, besidesOrders: true)) ?? false
  }

  private mutating func tell(_ name: FileName, _ what: String) {
    areDone = false
    Terminal.error("\(escaped(name.bytes)): \(what)")
  }

  /// Two looks, because a job may move while the directories are read.
  private mutating func lookForAny() throws(SpoolError) -> Bool {
    if try isAnyJob(in: [.new, .urgent, .cur, .partial]) {
      isSettled = false
      return false
    }
    defer { isSettled = true }
    guard isSettled else { return false }
    if try isAnyJob(in: [.failed]) {
      areDone = false
      Terminal.error("jobs were given up: `spoolrun status --spool \(ShellWords.quoted(spool.location))` names them")
    }
    return true
  }
}
