internal import ArgumentParser
internal import Glibc
internal import Spool

/// The jobs that a gesture is for, and doing it to each.
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

  /// To the jobs that were named.
  /// - Throws: the exit status: 1 if one of them was not found, or could not be moved.
  mutating func run(names: [String]) throws {
    do throws(SpoolError) {
      for bytes in RawArguments.bytes(of: names) {
        let (directory, name) = try split(bytes)
        if let outcome = try perform(name, in: directory) { note(outcome, bytes: bytes) }
      }
    } catch {
      throw fail(error)
    }
    if !isComplete { throw ExitStatus.givenUp.code }
  }

  /// To all jobs in `directories`, also those that move from one to another meanwhile.
  /// - Throws: the exit status: 1 if one of them could not be moved.
  mutating func run(all directories: [Directory]) throws {
    do throws(SpoolError) {
      try runOnAll(in: directories)
    } catch {
      throw fail(error)
    }
    if !isComplete { throw ExitStatus.givenUp.code }
  }

  /// One reading of a directory proves nothing (protocol, invariant 10): until two in a row find nothing to do.
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
          // Gone elsewhere: the next scan finds it there.
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

  /// - Returns: nil where the kernel does not let this one file be moved or removed (chattr(1)), after a message: the others go on.
  private mutating func perform(_ name: FileName, in directory: Directory?) throws(SpoolError) -> GestureOutcome? {
    do throws(SpoolError) {
      return try spool.perform(gesture, name, in: directory)
    } catch  where gesture.directories.allSatisfy({ spool.concernsOneFile(error, in: $0) }) {
      fail("\(gesture.rawValue): \(error)")
      return nil
    }
  }

  /// A claim's own name in `cur` is its job's. A job's name may look like one: so only what stands there counts.
  private func split(_ bytes: [UInt8]) throws(SpoolError) -> (Directory?, FileName) {
    let (directory, name) = try spool.split(bytes)
    if directory == .cur, name.isEntry, let claim = ClaimName(name), try spool.status(.cur, name) != nil {
      return (directory, claim.job.fileName)
    }
    return (directory, name)
  }

  private mutating func note(_ outcome: GestureOutcome, bytes: [UInt8]) {
    let name = escaped(bytes)
    switch outcome {
    case .moved(let from, let to): say("\(from.display) -> \(to.display)")
    case .due(let place): say("\(place.display): next attempt now")
    case .removed(let place): say("\(place.display) removed")
    case .unchanged(let place): say("\(place.display) stays: nothing to \(gesture.rawValue)")
    case .ambiguous(let places):
      fail(
        "\(name): several jobs have this name: \(places.map(\.display).joined(separator: ", ")); say which, with its directory"
      )
    case .taken(let place, let other):
      fail("\(place.display) stays: another job of this name is \(other.display)")
    case .directory(let place): fail("\(place.display) is a directory and no job: rm -r removes it")
    case .notFound(let elsewhere):
      let place = elsewhere.map { "\(name): nothing to \(gesture.rawValue): it is \($0.display)" }
      fail(place ?? "\(name): no such job")
    case .restless(let place): fail("\(place.display) moves on each time: try again")
    }
  }

  private func say(_ line: String) { if isVerbose { Terminal.print(line) } }

  private func fail(_ error: SpoolError) -> any Error {
    Terminal.error("\(gesture.rawValue): \(error)")
    return ExitStatus(error).code
  }

  private mutating func fail(_ message: String) {
    isComplete = false
    Terminal.error(message)
  }
}

/// What the gesture commands have in common.
struct GestureOptions: ParsableArguments {
  @OptionGroup var spool: SpoolOption

  @Flag(name: .shortAndLong, help: "Print each move.")
  var verbose = false

  @Argument(help: ArgumentHelp("Jobs by name, as directory/name, or by the path of their file.", valueName: "name"))
  var names: [String] = []

  /// - Parameter chosen: the directories that a flag such as `--all` stands for; nil without one.
  func run(_ gesture: Gesture, all chosen: [Directory]?) throws {
    var run = GestureRun(gesture, try spool.open(), isVerbose: verbose)
    if let chosen { try run.run(all: chosen) } else { try run.run(names: names) }
  }

  func validate(flags: Int, _ spelling: String) throws {
    if flags > 1 { throw ValidationError("--all and --failed exclude each other") }
    if flags == 0, names.isEmpty {
      throw ValidationError("Name jobs, or say \(spelling). A name that begins with a dash goes behind `--`.")
    }
    if flags == 1, !names.isEmpty {
      throw ValidationError("names go without \(spelling); the spool goes behind --spool")
    }
  }
}

struct Hold: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Sets jobs aside.",
    discussion: "Waiting jobs and running ones: a transfer stops within a second, and its data stays.")

  @OptionGroup var options: GestureOptions

  @Flag(name: .long, help: "All that wait or run.")
  var all = false

  func validate() throws { try options.validate(flags: all ? 1 : 0, "--all") }
  func run() throws { try options.run(.hold, all: all ? Gesture.hold.sources : nil) }
}

struct Release: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lets held jobs go on where they stopped.")

  @OptionGroup var options: GestureOptions

  @Flag(name: .long, help: "All that are held.")
  var all = false

  func validate() throws { try options.validate(flags: all ? 1 : 0, "--all") }
  func run() throws { try options.run(.release, all: all ? Gesture.release.sources : nil) }
}

struct Retry: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tries failed jobs again, and waiting ones now.",
    discussion:
      "A failed job gets a fresh budget of attempts and goes on from the data that it has. For one that waits for its next attempt, that is now."
  )

  @OptionGroup var options: GestureOptions

  @Flag(name: .long, help: "All that failed or wait for another attempt.")
  var all = false

  @Flag(name: .long, help: "All that failed.")
  var failed = false

  func validate() throws { try options.validate(flags: (all ? 1 : 0) + (failed ? 1 : 0), "--all or --failed") }
  func run() throws { try options.run(.retry, all: all ? Gesture.retry.sources : failed ? [.failed] : nil) }
}

struct Cancel: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Removes jobs and their data.",
    discussion: "A running transfer stops within a second. Finished jobs and their payloads stay.")

  @OptionGroup var options: GestureOptions

  @Flag(name: .long, help: "All that are not done.")
  var all = false

  @Flag(name: .long, help: "All that failed.")
  var failed = false

  func validate() throws { try options.validate(flags: (all ? 1 : 0) + (failed ? 1 : 0), "--all or --failed") }
  func run() throws { try options.run(.cancel, all: all ? Gesture.cancel.sources : failed ? [.failed] : nil) }
}
