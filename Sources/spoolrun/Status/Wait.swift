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
    if let timeout, duration(timeout) == nil {
      throw ValidationError("--timeout must be a time from 1s to 365d, such as 2h")
    }
    if all, !names.isEmpty {
      throw ValidationError("names and --all cannot be used together; name the spool with --spool")
    }
    if !all, names.isEmpty {
      throw ValidationError("Name jobs, or use --all. Write `--` before a name that begins with a dash.")
    }
  }

  func run() throws {
    try NamedSpool.refuse(among: names, of: "wait", spool)
    let spools = try self.spool.openAll(for: .reading, done: !all)
    let jobs: [(Spool, [FileName]?)] =
      try all
      ? spools.map { ($0, nil) } : MeantJobs.by(names, in: spools, Directory.ofJobs).map { try Self.jobs($0, spools) }
    try JobsWaitedFor.wait(for: jobs, timeout: timeout)
  }

  /// The jobs of this name, or else the one whose output it names, below the output root or by the path of the file.
  private static func jobs(_ meant: MeantJobs, _ spools: [Spool]) throws -> (Spool, [FileName]?) {
    try ExitStatus.reporting("wait") {
      let name = String(decoding: meant.name.bytes, as: UTF8.self)
      let isThere = try meant.isAnyThere()
      if isThere || meant.directory ?? .files != .files { return (meant.spool, meant.names) }
      let place = path(name)
      for spool in spools {
        let files = path("\(spool.location)/\(Directory.files.rawValue)")
        // Those that are not at their ends first, and those that were given up last.
        for directories: [Directory] in [[.new, .urgent, .cur, .partial, .cur, .hold], [.done], [.failed]] {
          func isMeant(_ job: JobText) -> Bool {
            let (receipt, asked) = (job.journal.publication.receipt, job.request)
            guard let output = receipt?.output ?? JobPlan.output(of: asked) else { return false }
            var root = receipt?.directory ?? files
            if receipt == nil, let named = asked.root { root = (try? NamedRoots(spool).target(of: named.text)) ?? root }
            return output.exact == name.exact || path("\(root)/\(output)").exact == place.exact
          }
          let found = try spool.unlessGone(JobSearch(spool).firstJob(in: directories, where: isMeant))
          if let found { return (spool, [found.place.job]) }
        }
      }
      return (meant.spool, meant.names)
    }
  }

  /// An absolute path without links, as far as it exists: the file may still have to come.
  private static func path(_ text: String) -> String {
    if let real = try? realPath(text) { return real }
    guard let slash = text.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path("./\(text)") }
    let above = text[..<slash]
    if above.isEmpty { return text }
    let directory = path(String(above))
    return (directory == "/" ? "" : directory) + text[slash...]
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
    /// Jobs that had the name, perhaps with a number, when this one was seen beside one of them: its end has another
    /// name than theirs.
    var older: Set<JobPlace>?
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
  /// - Parameter timeout: as a person wrote it.
  /// - Throws: the exit status, after a message, unless all are done.
  static func wait(for jobs: [(spool: Spool, names: [FileName]?)], timeout: String? = nil) throws {
    let end = timeout.flatMap { duration($0) }.map { Terminal.milliseconds() + Int64($0) * 1000 }
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
        if let end, Terminal.milliseconds() >= end {
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
    let search = JobSearch(spool)
    guard let name = JobName(job.name) else { return .gone }
    var ends: [JobPlace] = []
    do throws(SpoolError) {
      ends = try search.settledPlaces(of: name)
      if ends.contains(where: { !$0.hasEnded }) {
        if job.older == nil, ends.count > 1 { job.older = Set(try search.namesakes(of: name)) }
        if job.wasArchived == nil { job.wasArchived = try Archive(spool).contains(job.name) }
        job.isMissed = false
        return nil
      }
      if let older = job.older {
        ends = try search.namesakes(of: name).filter { !older.contains($0) }
        if let other = ends.first, !other.hasEnded {
          job = Awaited(name: other.job)
          return nil
        }
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
