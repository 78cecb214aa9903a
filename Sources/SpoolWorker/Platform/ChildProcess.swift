internal import CLinux
internal import Glibc
internal import Spool
internal import Synchronization
internal import SystemPackage

/// Tells child processes to stop. May be used from any thread and cannot be undone.
final class ChildStop: Sendable {
  private let flag = Atomic(false)

  var isRequested: Bool { flag.load(ordering: .relaxed) }

  func request() { flag.store(true, ordering: .relaxed) }
}

/// A hook or a gate command, run without blocking the transfers.
struct ChildProcess: Sendable {
  enum End: Sendable, Equatable {
    case exited(Int32)
    case signalled(Int32)
    case timedOut
    /// It was told to stop, and then exited with another status than 0, or was killed.
    case stopped
  }

  struct Outcome: Sendable {
    let end: End
    /// Its standard output and error, at most ``outputLimit`` bytes; without the standard output if that is the answer.
    let output: [UInt8]
    /// Its standard output, at most one byte more than ``outputLimit``, if it was kept apart.
    let answer: [UInt8]
    /// The last line of all its output, also of what is beyond ``outputLimit``.
    let lastLine: [UInt8]

    var isSuccess: Bool { end == .exited(0) }

    /// For a record: how it ended, and the last line of its output.
    var reason: String { lastLine.isEmpty ? description : "\(description): \(escaped(lastLine))" }

    var description: String {
      switch end {
      case .exited(let status): "exit status \(status)"
      case .signalled(let signal): "killed by signal \(signal)"
      case .timedOut: "still running after its time limit"
      case .stopped: "stopped, because the worker or its job was stopped"
      }
    }
  }

  /// An environment variable: any bytes but NUL (environ(7)), because file names are such bytes.
  struct Variable {
    let name: String
    let value: [UInt8]

    init(_ name: String, _ value: some Sequence<UInt8>) {
      self.name = name
      self.value = value.filter { $0 != 0 }
    }

    init(_ name: String, _ value: String) { self.init(name, value.utf8) }
  }

  static let outputLimit = 64 * 1024

  let arguments: [String]
  /// Added to the worker's own environment, without what its service manager tells it.
  var environment: [Variable] = []
  let seconds: Int
  let stop: ChildStop
  /// A descriptor that it keeps; negative for none.
  var kept: Int32 = -1
  /// Another one.
  var keptFile: Int32 = -1
  /// Whether its standard output is an answer, which is not for the log.
  var answers = false

  /// Seconds from SIGTERM to SIGKILL after a stop. Also the time limit of a program that starts after the stop.
  static let grace = 5

  /// Runs the program. Its process group gets SIGKILL when the time is up, and SIGTERM when ``stop`` is requested.
  func run() async throws(Errno) -> Outcome { try await runBlocking { () throws(Errno) in try runHere() } }

  func runHere() throws(Errno) -> Outcome {
    // Determined before the start. A stop that is requested between the start and this check would never be passed on.
    let mayBeTold = !stop.isRequested
    if let host = Host.current as? any ChildHost { return try collect(host.start(self), mayBeTold: mayBeTold) }
    return try collect(LinuxChild(self), mayBeTold: mayBeTold)
  }

  /// Of environ(7).
  fileprivate var variables: [[UInt8]] {
    let names = Set(environment.map { Array($0.name.utf8) } + ServiceManager.variables.map { Array($0.utf8) })
    var variables = environment.map { Array($0.name.utf8) + [0x3D] + $0.value }
    var next: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> = spoolrun_environment()
    while let entry = next.pointee {
      let inherited = [UInt8](UnsafeRawBufferPointer(start: entry, count: strlen(entry)))
      if !names.contains(Array(inherited.prefix { $0 != 0x3D })) { variables.append(inherited) }
      next += 1
    }
    return variables
  }

  /// - Parameter mayBeTold: whether to pass on a stop; false for a program that starts after the stop, such as the
  ///   `done` hook of the last job.
  private func collect(_ child: any Child, mayBeTold: Bool) throws(Errno) -> Outcome {
    var mayBeTold = mayBeTold
    var isTold = false
    var deadline = Host.current.awakeMilliseconds() + Int64(mayBeTold ? seconds : min(seconds, Self.grace)) * 1000
    var status: Int32?
    var isKilled = false
    while true {
      if mayBeTold, stop.isRequested {
        (mayBeTold, isTold) = (false, true)
        deadline = min(deadline, Host.current.awakeMilliseconds() + Int64(Self.grace) * 1000)
        child.send(SIGTERM)
      }
      let left = deadline - Host.current.awakeMilliseconds()
      if left <= 0 {
        isKilled = true
        child.send(SIGKILL)
      }
      let hasSaid = !isKilled && child.take(milliseconds: min(left, 50))
      if isTold, child.hasEnded {
        // A child that the process forked just before may have missed the signal. Until waitpid(2), no other process
        // group can get this number.
        child.send(SIGKILL)
      }
      // Waits for the process, not for the end of its output, which background processes may keep open.
      status = try child.status(waits: isKilled)
      if status != nil { break }
      // A closed output is always readable, so without a pause this would spin.
      if !hasSaid { Host.current.wait(milliseconds: 10) }
    }
    // At most the capacity of a pipe (pipe(7)), in case a background process continues to write.
    for _ in 0..<LinuxChild.mostLeft where !isKilled { if !child.take(milliseconds: 0) { break } }
    return Outcome(
      end: end(status ?? 0, isTold: isTold, isKilled: isKilled), output: child.output, answer: child.answer,
      lastLine: child.lastLine)
  }

  private func end(_ status: Int32, isTold: Bool, isKilled: Bool) -> End {
    if isKilled { return isTold ? .stopped : .timedOut }
    // wait(2): the low seven bits are the signal; 0 for an exit, whose status is in the next byte.
    let signal = status & 0x7F
    let end: End = signal == 0 ? .exited((status >> 8) & 0xFF) : .signalled(signal)
    // The exit status of a shell whose command was ended by the signal is not a verdict.
    return isTold && end != .exited(0) ? .stopped : end
  }
}

/// A program that runs, to the process that has started it. What it writes is its output for the log, and perhaps its
/// standard output apart from that.
protocol Child: AnyObject {
  var output: [UInt8] { get }
  var answer: [UInt8] { get }
  /// The first 200 bytes of the last line of its output that is not empty.
  var lastLine: [UInt8] { get }
  /// Whether it has ended, and nobody has asked for its status yet (waitid(2)).
  var hasEnded: Bool { get }
  /// kill(2), for all processes that it has started as well.
  func send(_ signal: Int32)
  /// Its status, as of wait(2); nil as long as it runs.
  func status(waits: Bool) throws(Errno) -> Int32?
  /// Waits for some of either, and reads it.
  func take(milliseconds: Int64) -> Bool
}

/// A simulated host, whose programs are no processes of this machine.
protocol ChildHost: Host { func start(_ program: ChildProcess) throws(Errno) -> any Child }

private final class LinuxChild: Child {
  private struct Stream {
    let descriptor: Int32
    let limit: Int
    var bytes: [UInt8] = []
    var hasEnded = false
  }

  /// How many reads empty full pipes (pipe(7)).
  static let mostLeft = 2 * 64 * 1024 / bufferSize
  private static let bufferSize = 4096

  private let process: Int32
  private var streams: [Stream]
  private var buffer = [UInt8](repeating: 0, count: bufferSize)
  private(set) var lastLine: [UInt8] = []
  private var isLineOver = false

  init(_ program: ChildProcess) throws(Errno) {
    var (output, answer): (Int32, Int32) = (-1, -1)
    process = Self.withCStrings(program.arguments.map { Array($0.utf8) }) { argv in
      Self.withCStrings(program.variables) { envp in
        withUsualMask {
          program.answers
            ? spoolrun_spawn(argv, envp, program.kept, program.keptFile, &output, &answer)
            : spoolrun_spawn(argv, envp, program.kept, program.keptFile, &output, nil)
        }
      }
    }
    guard process > 0 else { throw Errno(rawValue: -process) }
    streams = [Stream(descriptor: output, limit: ChildProcess.outputLimit)]
    // One byte more shows that it is too long.
    if program.answers { streams.append(Stream(descriptor: answer, limit: ChildProcess.outputLimit + 1)) }
  }

  deinit { for stream in streams { _ = Glibc.close(stream.descriptor) } }

  var output: [UInt8] { streams[0].bytes }
  var answer: [UInt8] { streams.count > 1 ? streams[1].bytes : [] }

  var hasEnded: Bool {
    var info = siginfo_t()
    return waitid(P_PID, UInt32(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_signo == SIGCHLD
  }

  func send(_ signal: Int32) { kill(-process, signal) }

  func status(waits: Bool) throws(Errno) -> Int32? {
    var status: Int32 = 0
    let waited = waitpid(process, &status, waits ? 0 : WNOHANG)
    if waited == process { return status }
    // An error must not count as success.
    if waited < 0, errno != EINTR { throw Errno(rawValue: errno) }
    return nil
  }

  func take(milliseconds: Int64) -> Bool {
    if streams.allSatisfy(\.hasEnded) { return false }
    // poll(2) ignores a negative descriptor.
    var polled = streams.map { pollfd(fd: $0.hasEnded ? -1 : $0.descriptor, events: Int16(POLLIN), revents: 0) }
    guard poll(&polled, nfds_t(polled.count), Int32(clamping: milliseconds)) > 0 else { return false }
    var hasAny = false
    for index in streams.indices where polled[index].revents != 0 {
      let count = read(streams[index].descriptor, &buffer, buffer.count)
      if count > 0 {
        if index == 0 { noteLines(buffer[..<count]) }
        let room = streams[index].limit - streams[index].bytes.count
        streams[index].bytes += buffer[..<count].prefix(room)
        hasAny = true
      } else if count == 0 {
        streams[index].hasEnded = true
      }
    }
    return hasAny
  }

  private func noteLines(_ bytes: ArraySlice<UInt8>) {
    for byte in bytes {
      if byte == 0x0A {
        isLineOver = true
      } else {
        if isLineOver { (lastLine, isLineOver) = ([], false) }
        if lastLine.count < 200 { lastLine.append(byte) }
      }
    }
  }

  private static func withCStrings<Result>(
    _ strings: [[UInt8]], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
  ) -> Result {
    var pointers: [UnsafeMutablePointer<CChar>?] = strings.map { bytes in
      (bytes + [0]).withUnsafeBytes { strdup($0.baseAddress!.assumingMemoryBound(to: CChar.self)) }
    }
    pointers.append(nil)
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeBufferPointer { body($0.baseAddress!) }
  }
}
