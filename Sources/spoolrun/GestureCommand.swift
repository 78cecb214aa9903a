internal import ArgumentParser
internal import Glibc
internal import Spool

/// Performs a gesture on each of its jobs.
struct GestureRun {
  let gesture: Gesture
  let spool: Spool
  let isVerbose: Bool
  private var isComplete = true

  init(_ gesture: Gesture, _ spool: Spool, isVerbose: Bool) {
    self.gesture = gesture
    self.spool = spool
    self.isVerbose = isVerbose
  }

  /// Performs the gesture on the jobs that were named.
  /// - Throws: the exit status: 1 if one of them was not found or could not be moved.
  mutating func run(names: [String]) throws {
    do throws(SpoolError) {
      for bytes in RawArguments.bytes(of: names) {
        let (directory, name) = try spool.splitClaim(bytes)
        if let outcome = try perform(name, in: directory) { note(outcome, bytes: bytes) }
      }
    } catch {
      throw fail(error)
    }
    if !isComplete { throw ExitStatus.givenUp.code }
  }

  /// Performs the gesture on all jobs in `directories`, including those that move between them meanwhile.
  /// - Throws: the exit status: 1 if one of them could not be moved.
  mutating func run(all directories: [Directory]) throws {
    do throws(SpoolError) {
      try runOnAll(in: directories)
    } catch {
      throw fail(error)
    }
    if !isComplete { throw ExitStatus.givenUp.code }
  }

  /// The number of jobs in `directories` at the moment.
  /// - Throws: the exit status.
  func count(all directories: [Directory]) throws -> Int {
    do throws(SpoolError) {
      return Set(try spool.jobs(for: gesture, in: directories).map(\.name)).count
    } catch {
      throw fail(error)
    }
  }

  /// Repeats until two scans in a row find nothing to do, because a single scan can miss names (INTERNALS.md,
  /// invariant 10).
  private mutating func runOnAll(in directories: [Directory]) throws(SpoolError) {
    var finished: Set<FileName> = []
    var quietScans = 0
    for _ in 0..<20 where quietScans < 2 {
      var isQuiet = true
      for (name, directory) in try spool.jobs(for: gesture, in: directories) {
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
        case .moved, .removed, .restless: isQuiet = false
        default: finished.insert(key)
        }
        note(outcome, bytes: key.bytes)
      }
      quietScans = isQuiet ? quietScans + 1 : 0
    }
  }

  /// - Returns: nil, after a message, if the kernel does not let this one file be moved or removed (chattr(1)). The
  ///   others continue.
  private mutating func perform(_ name: FileName, in directory: Directory?) throws(SpoolError) -> GestureOutcome? {
    do throws(SpoolError) {
      return try spool.perform(gesture, name, in: directory)
    } catch  where gesture.directories.allSatisfy({ spool.concernsOneFile(error, in: $0) }) {
      fail("\(gesture.command): \(error)")
      return nil
    }
  }

  private mutating func note(_ outcome: GestureOutcome, bytes: [UInt8]) {
    let report = GestureReport(outcome, of: gesture, name: bytes)
    if report.isProblem { fail(report.text) } else { say(report.text) }
  }

  private func say(_ line: String) { if isVerbose { Terminal.print(line) } }

  private func fail(_ error: SpoolError) -> any Error {
    Terminal.error("\(gesture.command): \(error)")
    return ExitStatus(error).code
  }

  private mutating func fail(_ message: String) {
    isComplete = false
    Terminal.error(message)
  }
}

/// The options that all gesture commands have.
struct GestureOptions: ParsableArguments {
  @OptionGroup var spool: SpoolOption

  @Flag(name: .shortAndLong, help: "Print each move.")
  var verbose = false

  @Argument(
    help: ArgumentHelp("Jobs, as name, directory/name or the path of their file.", valueName: "name"),
    completion: JobNameCompletion.kind)
  var names: [String] = []

  /// - Parameters:
  ///   - chosen: the directories that a flag such as `--all` selects; nil without such a flag.
  ///   - confirm: asks whether to go on with so many jobs; nil to ask nobody.
  func run(_ gesture: Gesture, all chosen: [Directory]?, confirm: ((Int) -> Bool)? = nil) throws {
    try NamedSpool.refuse(among: names, of: gesture.command, spool)
    var run = GestureRun(gesture, try spool.open(), isVerbose: verbose)
    guard let chosen else { return try run.run(names: names) }
    if let confirm {
      let count = try run.count(all: chosen)
      guard count == 0 || confirm(count) else {
        Terminal.error("nothing is changed")
        throw ExitStatus.givenUp.code
      }
    }
    try run.run(all: chosen)
  }

  func validate(flags: Int, _ spelling: String) throws {
    if flags > 1 { throw ValidationError("--all and --failed cannot be used together") }
    if flags == 0, names.isEmpty {
      throw ValidationError("Name jobs, or use \(spelling). Write `--` before a name that begins with a dash.")
    }
    if flags == 1, !names.isEmpty {
      throw ValidationError("names and \(spelling) cannot be used together; name the spool with --spool")
    }
  }
}

struct Hold: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hold",
    abstract: "Pauses jobs.",
    discussion: "Moves waiting and running jobs to hold. A transfer stops within a second; its data is kept.")

  @OptionGroup var options: GestureOptions

  @Flag(name: .long, help: "Pause all jobs that wait or run.")
  var all = false

  func validate() throws { try options.validate(flags: all ? 1 : 0, "--all") }
  func run() throws { try options.run(.hold, all: all ? Gesture.hold.sourcesOfAll : nil) }
}

struct Release: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "release",
    abstract: "Resumes paused jobs.",
    discussion: "Moves paused jobs to new. They continue from the data that they have.")

  @OptionGroup var options: GestureOptions

  @Flag(name: .long, help: "Resume all paused jobs.")
  var all = false

  func validate() throws { try options.validate(flags: all ? 1 : 0, "--all") }
  func run() throws { try options.run(.release, all: all ? Gesture.release.sourcesOfAll : nil) }
}

struct Retry: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retry",
    abstract: "Retries failed jobs.",
    discussion: """
      A failed job gets its full number of attempts again and continues from the data that it has. A job that waits \
      for its next attempt becomes due now.
      """)

  @OptionGroup var options: GestureOptions

  @Flag(name: .long, help: "Retry all jobs that failed or wait for another attempt.")
  var all = false

  @Flag(name: .long, help: "Retry all jobs that failed.")
  var failed = false

  func validate() throws { try options.validate(flags: (all ? 1 : 0) + (failed ? 1 : 0), "--all or --failed") }
  func run() throws { try options.run(.retry, all: all ? Gesture.retry.sourcesOfAll : failed ? [.failed] : nil) }
}

struct Cancel: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cancel",
    abstract: "Removes jobs and their data.",
    discussion: "A running transfer stops within a second. Finished jobs and their payloads are kept.")

  @OptionGroup var options: GestureOptions

  @Flag(name: .long, help: "Cancel all jobs that are not done.")
  var all = false

  @Flag(name: .long, help: "Cancel all jobs that failed.")
  var failed = false

  @Flag(name: .shortAndLong, help: "Do not ask before --all or --failed in a terminal.")
  var yes = false

  func validate() throws { try options.validate(flags: (all ? 1 : 0) + (failed ? 1 : 0), "--all or --failed") }
  func run() throws {
    let confirm: ((Int) -> Bool)? =
      yes || !Question.canBeAsked
      ? nil
      : { Question.ask("cancel \($0) \($0 == 1 ? "job, and remove its" : "jobs, and remove their") data?") }
    try options.run(
      .cancel, all: all ? Gesture.cancel.sourcesOfAll : failed ? [.failed] : nil, confirm: confirm)
  }
}
