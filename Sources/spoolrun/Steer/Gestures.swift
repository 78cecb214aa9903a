internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolStatus

struct GestureRun {
  let gesture: Gesture
  let spool: Spool
  let isVerbose: Bool
  /// Whether each of the jobs was found, and could be moved.
  var isComplete = true
  /// The inodes of the jobs that are as a person wants them now: several may have one name.
  private var changed: Set<UInt64> = []
  var hasChanged: Bool { !changed.isEmpty }
  /// Those that are done, and to be fetched again if need be.
  private var done: [JobPlace] = []
  /// Those that were removed, and whose data is still there.
  private var cancelled: [JobName] = []

  init(_ gesture: Gesture, _ spool: Spool, isVerbose: Bool) {
    (self.gesture, self.spool, self.isVerbose) = (gesture, spool, isVerbose)
    // Times that it sets are due by the file system's clock.
    try? spool.learnClock()
  }

  func tell() throws {
    let count = changed.count
    if isVerbose || count == 0 && !isComplete { return }
    if count == 0 { return Terminal.say("nothing to \(gesture.command)") }
    let (jobs, isOne) = (jobCount(count), count == 1)
    switch gesture {
    case .hold: Terminal.say("\(jobs) paused, in hold/")
    case .cancel: Terminal.say("\(jobs) removed")
    case .high: Terminal.say("\(jobs) \(isOne ? "starts" : "start") before all others")
    case .normal, .low: Terminal.say("\(jobs) \(isOne ? "has" : "have") the priority \(gesture.rawValue)")
    case .release, .retry:
      let verb = gesture == .release ? isOne ? "goes on" : "go on" : isOne ? "is tried again" : "are tried again"
      Terminal.say("\(jobs) \(verb)")
      try MissingWorker.tell(of: spool)
    }
  }

  /// - Parameter text: as the person named them.
  mutating func run(_ jobs: MeantJobs, _ text: [UInt8]) throws(SpoolError) {
    if let doubt = jobs.doubt { return fail(doubt) }
    for name in jobs.names {
      guard let outcome = try perform(name, in: jobs.directory) else { continue }
      if gesture == .retry, case .notFound(let elsewhere?) = outcome, elsewhere.directory == .done {
        done.append(elsewhere)
      } else {
        // A person should see which job is gone.
        let isGuess = gesture == .cancel && jobs.names.count == 1 && name != jobs.name
        note(outcome, bytes: name == jobs.name ? text : name.bytes, says: isGuess)
      }
    }
  }

  func jobs(in directories: [Directory]) throws(SpoolError) -> [(name: FileName, directory: Directory)] {
    try spool.unlessGone(Steering(spool).jobs(for: gesture, in: directories)) ?? []
  }

  /// Performs the gesture on all jobs in `directories`, including those that move between them meanwhile. Repeats until
  /// two scans in a row find nothing to do, because a single scan can miss names (INTERNALS.md, invariant 10).
  mutating func run(all directories: [Directory]) throws(SpoolError) {
    var finished: Set<FileName> = []
    var quietScans = 0
    // The next scan may find them where they have come to rest.
    var restless: [(outcome: GestureOutcome, bytes: [UInt8])] = []
    for _ in 0..<20 where quietScans < 2 {
      var isQuiet = true
      restless = []
      for (name, directory) in try jobs(in: directories) {
        let key = FileName(Path(directory, name).bytes)
        if finished.contains(key) { continue }
        guard let outcome = try perform(name, in: directory) else {
          finished.insert(key)
          continue
        }
        switch outcome {
        case .notFound:
          // It has moved: the next scan finds it in its new place.
          isQuiet = false
          continue
        case .restless:
          isQuiet = false
          restless.append((outcome, key.bytes))
          continue
        case .moved, .removed: isQuiet = false
        default: finished.insert(key)
        }
        note(outcome, bytes: key.bytes)
      }
      quietScans = isQuiet ? quietScans + 1 : 0
    }
    for (outcome, bytes) in restless { note(outcome, bytes: bytes) }
  }

  /// Ends the rest of a server, and makes its jobs due that wait for another attempt.
  /// - Parameter host: in lower case, perhaps with a port.
  /// - Returns: whether there was anything to do.
  mutating func askAgain(_ host: String) throws(SpoolError) -> Bool {
    var isFound = try ServerFiles(spool).forget { ServerNote.isMeant(by: host, $0.server) } > 0
    for name in try spool.list(.partial) where !name.isData {
      let job = try orNil(JobSearch(spool).job(.partial, name), where: \.isUnreadable)
      guard let url = job?.request.urls.first, ServerNote.isMeant(by: host, url.text) else { continue }
      isFound = true
      guard let outcome = try perform(name, in: .partial) else { continue }
      // It has moved meanwhile, so it does not wait.
      if case .notFound = outcome { continue }
      note(outcome, bytes: name.bytes)
    }
    return isFound
  }

  /// - Returns: nil, after a message, if the kernel does not let this one file be moved or removed (chattr(1)).
  private mutating func perform(_ name: FileName, in directory: Directory?) throws(SpoolError) -> GestureOutcome? {
    do throws(SpoolError) {
      let steering = Steering(spool)
      let outcome = try spool.unlessGone(steering.perform(gesture, name, in: directory, leavesData: true))
      if case .removed(let place)? = outcome, let job = JobName(place.job) { cancelled.append(job) }
      if cancelled.count >= JobData.mostAtOnce { try removeData() }
      return outcome ?? .notFound(elsewhere: nil)
    } catch  where gesture.directories.allSatisfy({ spool.concernsOneFile(error, in: $0) }) {
      fail("\(gesture.command): \(error)")
      return nil
    }
  }

  private mutating func note(_ outcome: GestureOutcome, bytes: [UInt8], says: Bool = false) {
    switch outcome {
    case .moved(let place, _), .due(let place), .removed(let place): changed.insert(place.inode)
    case .unchanged, .ambiguous, .taken, .directory, .notFound, .restless: break
    }
    let report = GestureReport(outcome, of: gesture, name: bytes)
    if report.isProblem { return fail(report.text) }
    if isVerbose { Terminal.print(report.text) } else if says { Terminal.say(report.text) }
  }

  /// Does for all jobs together what would read directories for each. To be called when all have been moved.
  mutating func finish() throws(SpoolError) {
    try removeData()
    if done.isEmpty { return }
    var seen: Set<FileName> = []
    done.removeAll { !seen.insert($0.job).inserted }
    let named = try ReceiptList(spool, named: done.map(\.job)).places(in: spool)
    let reader = PayloadReader(
      spool: spool, directory: nil, isVerbose: false, refetches: true, isRetry: true,
      receipts: AllReceipts(spool, named: named), progress: VerifyProgress())
    for place in done { fetchAgain(place, reader) }
    done = []
  }

  mutating func removeData() throws(SpoolError) {
    if cancelled.isEmpty { return }
    let jobs = cancelled
    cancelled = []
    do throws(SpoolError) {
      try spool.unlessGone(JobData(spool).removeOrphanedData(of: jobs))
    } catch  where gesture.directories.allSatisfy({ spool.concernsOneFile(error, in: $0) }) {
      fail("\(gesture.command): \(error)")
    }
  }

  /// Has a job that is done fetch its file again, if that is gone or not what the receipt says.
  private mutating func fetchAgain(_ place: JobPlace, _ reader: PayloadReader) {
    let answer = reader.answer(ListedReceipt(name: place.job, isNamed: true))
    let line = answer.line ?? "\(place.job.display): done, and its file is sound"
    if answer.isAgain { changed.insert(place.inode) } else if !answer.isGood { return fail(line) }
    if isVerbose { Terminal.print(line) } else { Terminal.say(line) }
  }

  mutating func fail(_ message: String) {
    isComplete = false
    Terminal.error(message)
  }
}

struct GestureOptions: ParsableArguments {
  @OptionGroup var spool: SpoolOption

  @Flag(name: .shortAndLong, help: "Print each move.") var verbose = false

  @Argument(
    help: ArgumentHelp(
      "Jobs, as name, its beginning, a pattern such as 'a*', directory/name or the path of the job's own file.",
      valueName: "name"), completion: JobNameCompletion.kind) var names: [String] = []

  /// - Parameter confirm: asks whether to go on with so many jobs; nil to ask nobody.
  func run(_ gesture: Gesture, all: Bool = false, failed: Bool = false, confirm: ((Int) -> Bool)? = nil) throws {
    let chosen: [Directory]? = all ? gesture.sourcesOfAll : failed ? [.failed] : nil
    try NamedSpool.refuse(among: names, of: gesture.command, spool)
    let use = gesture == .cancel ? SpoolUse.cancelling : .changing
    var runs = try spool.openAll(for: use, having: gesture == .retry ? .jobs : .undone).map {
      GestureRun(gesture, $0, isVerbose: verbose)
    }
    try ExitStatus.reporting(gesture.command) {
      // Also where something fails, which is told: those jobs are gone.
      defer { for index in runs.indices { try? runs[index].removeData() } }
      if let chosen {
        var count = 0
        if confirm != nil { for run in runs { count += try run.jobs(in: chosen).count } }
        if let confirm, count > 0, !confirm(count) {
          runs[0].fail("nothing is changed")
        } else {
          for index in runs.indices { try runs[index].run(all: chosen) }
        }
      } else {
        for text in RawArguments.bytes(of: names) {
          let jobs = try MeantJobs.by(text, in: runs.map(\.spool), gesture.sources)
          try runs[jobs.index].run(jobs, text)
        }
      }
      for index in runs.indices { try runs[index].finish() }
      let busy = runs.filter(\.hasChanged)
      for run in busy.isEmpty ? Array(runs.prefix(1)) : busy { try run.tell() }
      if gesture == .cancel { try OwnSpools.removeDone(runs.map(\.spool)) }
    }
    if !runs.allSatisfy(\.isComplete) { throw ExitStatus.givenUp.code }
  }

  func validate(all: Bool, failed: Bool = false, _ spelling: String = "--all") throws {
    if all, failed { throw ValidationError("--all and --failed cannot be used together") }
    try Self.check(names, isForMany: all || failed, spelling)
  }

  /// - Parameter isForMany: whether an option names the jobs, which is one of `spelling`.
  static func check(_ names: [String], isForMany: Bool, _ spelling: String = "--all") throws {
    if !isForMany, names.isEmpty {
      throw ValidationError("Name jobs, or use \(spelling). Write `--` before a name that begins with a dash.")
    }
    if isForMany, !names.isEmpty {
      throw ValidationError("names and \(spelling) cannot be used together; name the spool with --spool")
    }
  }
}

struct Hold: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hold", abstract: "Pauses jobs.",
    discussion: "Moves waiting and running jobs to hold. A transfer stops within a second; its data is kept.")

  @OptionGroup var options: GestureOptions

  @Flag(help: "Pause all jobs that wait or run, and all subscriptions.") var all = false

  func validate() throws { try options.validate(all: all) }
  func run() throws { try options.run(.hold, all: all) }
}

struct Release: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "release", abstract: "Resumes paused jobs.",
    discussion: "Moves paused jobs to new. They continue from the data that they have.")

  @OptionGroup var options: GestureOptions

  @Flag(help: "Resume all paused jobs.") var all = false

  func validate() throws { try options.validate(all: all) }
  func run() throws { try options.run(.release, all: all) }
}

struct Retry: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retry", abstract: "Retries failed jobs.", usage: "spoolrun retry [<options>] [<name> ...]",
    discussion: """
      A failed job gets its full number of attempts again and continues from the data that it has. A job that waits \
      for its next attempt becomes due now, and its server is asked again although it rests. A done job, by its name, \
      fetches its file again if that is gone or is not what the receipt says.
      """)

  @OptionGroup var options: GestureOptions

  @Flag(help: "Retry all jobs that failed or wait for another attempt.") var all = false

  @Flag(help: "Retry all jobs that failed.") var failed = false

  @Option(help: ArgumentHelp("Ask this server or proxy again now, although it rests.", valueName: "host"))
  var server: String?

  func validate() throws {
    if server != nil {
      if all || failed || !options.names.isEmpty { throw ValidationError("--server cannot be used with jobs") }
      return
    }
    try options.validate(all: all, failed: failed, "--all, --failed or --server")
  }

  func run() throws {
    guard let server else { return try options.run(.retry, all: all, failed: failed) }
    var (isFound, isComplete) = (false, true)
    try ExitStatus.reporting("retry") {
      for spool in try options.spool.openAll() {
        var run = GestureRun(.retry, spool, isVerbose: options.verbose)
        if try spool.unlessGone(run.askAgain(server.lowercasedASCII)) == true {
          isFound = true
          Terminal.say("\(escaped(server)) is asked again now")
          try MissingWorker.tell(of: spool)
        }
        isComplete = isComplete && run.isComplete
      }
    }
    if !isFound { throw ExitStatus.givenUp.after("retry: \(escaped(server)) does not rest, and no job waits for it") }
    if !isComplete { throw ExitStatus.givenUp.code }
  }
}

struct Cancel: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cancel", abstract: "Removes jobs and their data.", usage: "spoolrun cancel [<options>] [<name> ...]",
    discussion: "A running transfer stops within a second. Finished jobs and their files are kept.")

  @OptionGroup var options: GestureOptions

  @Flag(help: "Cancel all jobs that are not done.") var all = false

  @Flag(help: "Cancel all jobs that failed.") var failed = false

  @Flag(name: .shortAndLong, help: "Do not ask before --all or --failed in a terminal.") var yes = false

  func validate() throws { try options.validate(all: all, failed: failed, "--all or --failed") }
  func run() throws {
    let confirm: ((Int) -> Bool)? =
      yes || !Terminal.canAsk
      ? nil : { Terminal.ask("cancel \($0) \($0 == 1 ? "job, and remove its" : "jobs, and remove their") data?") }
    try options.run(.cancel, all: all, failed: failed, confirm: confirm)
  }
}

struct GestureReport {
  /// Without control characters.
  let text: String
  /// Whether the job is not as the gesture would make it.
  let isProblem: Bool

  /// - Parameter name: the job, as the person named it.
  init(_ outcome: GestureOutcome, of gesture: Gesture, name: [UInt8]) {
    let name = escaped(name)
    switch outcome {
    case .moved(let from, let to): (text, isProblem) = ("\(from.display) -> \(to.display)", false)
    case .due(let place): (text, isProblem) = ("\(place.display): next attempt now", false)
    case .removed(let place): (text, isProblem) = ("\(place.display) removed", false)
    case .unchanged(let place): (text, isProblem) = ("\(place.display): nothing to \(gesture.command)", false)
    case .ambiguous(let places): (text, isProblem) = (Self.ambiguous(name, places), true)
    case .taken(let place, let other):
      (text, isProblem) = ("\(place.display) cannot be moved: \(other.display) has the same name", true)
    case .directory(let place):
      (text, isProblem) = ("\(place.display) is a directory, not a job: remove it with rm -r", true)
    case .notFound(let elsewhere):
      let place = elsewhere.map { "\(name): nothing to \(gesture.command): it is \($0.display)" }
      (text, isProblem) = (place ?? "\(name): no such job", true)
    case .restless(let place): (text, isProblem) = ("\(place.display) keeps moving: try again", true)
    }
  }

  static func ambiguous(_ name: String, _ places: [JobPlace]) -> String {
    let all = places.map(\.display).joined(separator: ", ")
    return "\(name): several jobs have this name: \(all); name the directory as well"
  }
}

struct Prioritise: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prioritise", abstract: "Lets waiting jobs start before or after others.",
    usage: "spoolrun prioritise [<options>] [<name> ...]",
    discussion: """
      With --high, which is the default, moves jobs to urgent: they start before all others, and one that waits for \
      its next attempt starts now. With --normal or --low, writes the priority into the job.
      """)

  enum Level: String, EnumerableFlag {
    case high, normal, low

    static func help(for value: Level) -> ArgumentHelp? {
      switch value {
      case .high: "Start before all others that wait."
      case .normal: "Start in the order of age."
      case .low: "Start only when no other job can."
      }
    }

    var gesture: Gesture {
      switch self {
      case .high: .high
      case .normal: .normal
      case .low: .low
      }
    }
  }

  @OptionGroup var options: GestureOptions

  @Flag var level = Level.high

  func validate() throws {
    if options.names.isEmpty { throw ValidationError("Name jobs. Write `--` before a name that begins with a dash.") }
  }

  func run() throws { try options.run(level.gesture) }
}
