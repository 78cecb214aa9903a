internal import ArgumentParser
internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SpoolWorker
internal import Synchronization
internal import SystemPackage

/// Standard output and error, unbuffered, so that lines of several processes don't mix.
enum Terminal {
  static var isErrorTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  /// Whether something could not be written to standard output. The work itself is done.
  static var hasOutputFailed: Bool { outputFailed.load(ordering: .relaxed) }
  private static let outputFailed = Atomic(false)

  /// Opens /dev/null for those of standard input, output and error that are closed. Otherwise the next file that is
  /// opened, such as a job, would get their number, and messages would be written into it.
  static func openMissing() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      // open(2) returns the lowest free number. Without /dev/null there is nowhere to print a message.
      guard open("/dev/null", O_RDWR) == descriptor else { exit(ExitStatus.inputOutput.rawValue) }
    }
  }

  /// A descriptor that can be read when the process is told to end, signalfd(2).
  static func stopSignals() throws(SpoolError) -> Int32 {
    let signals = spoolrun_stop_signals()
    if signals >= 0 { return signals }
    throw SpoolError(call: .open, path: "signalfd", errno: Errno(rawValue: Glibc.errno))
  }

  static func print(_ line: String) { write(line + "\n", to: STDOUT_FILENO) }
  /// Prints a job's name: to a program as it is, because other commands take it so.
  static func print(name: FileName) {
    if isatty(STDOUT_FILENO) == 1 { print(name.display) } else { write(name.bytes + [0x0A], to: STDOUT_FILENO) }
  }
  /// Prints what went wrong, or at another priority what a person should know.
  static func error(_ message: String, _ priority: LogPriority = .error) {
    write(LogReader.current.text("spoolrun: \(message)", priority) + "\n", to: STDERR_FILENO)
  }
  /// Tells a person what was done. Elsewhere, success is silent: cron would mail it.
  static func say(_ message: String) { if isErrorTerminal { error(message, .info) } }
  /// Asks for a password without showing it; nil where there is no terminal.
  static func password(of user: String) -> String? {
    guard isatty(STDIN_FILENO) == 1, let typed = getpass("Password of \(escaped(user)): ") else { return nil }
    // getpass(3) takes ^C for a character.
    if strchr(typed, 3) != nil { spoolrun_die_of(SIGINT) }
    return String(validatingCString: typed)
  }
  static func log(_ line: String) { write(line + "\n", to: STDERR_FILENO) }

  /// - Returns: false if the reader has gone, or writing fails, such as on a full disk. Only the latter is reported,
  ///   once.
  @discardableResult static func write(_ text: String, to descriptor: Int32) -> Bool {
    write(Array(text.utf8), to: descriptor)
  }

  @discardableResult private static func write(_ text: [UInt8], to descriptor: Int32) -> Bool {
    var bytes = text[...]
    while !bytes.isEmpty {
      let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 {
        if errno == EINTR { continue }
        // Another process has made the pipe non-blocking.
        if errno == EAGAIN {
          var writable = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
          _ = poll(&writable, 1, -1)
          continue
        }
        // A reader that closes its pipe early, such as head(1), is no error.
        if descriptor == STDOUT_FILENO, errno != EPIPE, !outputFailed.exchange(true, ordering: .relaxed) {
          error("write standard output: \(Errno(rawValue: errno))")
        }
        return false
      }
      bytes = bytes.dropFirst(count)
    }
    return true
  }

  static var canAsk: Bool { isatty(STDIN_FILENO) == 1 && isErrorTerminal }

  /// - Returns: whether the answer begins with `y`. The end of the input is no answer.
  static func ask(_ text: String) -> Bool {
    write("spoolrun: \(text) [y/N] ", to: STDERR_FILENO)
    return readLine().map { $0.lowercasedASCII.begins(with: "y") } ?? false
  }

  static func size(_ descriptor: Int32) -> (columns: Int, rows: Int)? {
    var (columns, rows): (Int32, Int32) = (0, 0)
    guard spoolrun_terminal_size(descriptor, &columns, &rows) == 0 else { return nil }
    // Some terminals don't know their size, such as a serial line.
    return (columns > 0 ? Int(columns) : number("COLUMNS") ?? 80, rows > 0 ? Int(rows) : number("LINES") ?? 24)
  }

  static func isCapable(_ descriptor: Int32) -> Bool {
    isatty(descriptor) == 1 && !["", "dumb"].contains(variable("TERM"))
  }

  /// Colours are used on a terminal, unless the user has switched them off (https://no-color.org).
  static func look(_ descriptor: Int32) -> Look {
    Look(isColored: isCapable(descriptor) && variable("NO_COLOR").isEmpty, isUnicode: isUnicode)
  }

  /// Whether the locale's encoding is UTF-8, by the variables that setlocale(3) reads, in its order.
  private static var isUnicode: Bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map { variable($0) }.first { !$0.isEmpty } ?? ""
    return ["utf-8", "utf8"].contains { locale.lowercasedASCII.utf8.contains($0.utf8) }
  }

  private static func variable(_ name: String) -> String { getenv(name).map { String(cString: $0) } ?? "" }
  private static func number(_ name: String) -> Int? { Int(variable(name)).flatMap { $0 > 0 ? $0 : nil } }
}

/// Who reads standard error.
enum LogReader: Sendable, Equatable {
  case terminal
  /// The journal of systemd, which reads a priority at the beginning of each line (sd-daemon(3)).
  case journal
  /// A file or a pipe, such as that of cron, which mails all that is written.
  case other

  static let current: LogReader = {
    if isatty(STDERR_FILENO) == 1 { return .terminal }
    var status = stat()
    guard let stream = getenv("JOURNAL_STREAM"), fstat(STDERR_FILENO, &status) == 0 else { return .other }
    // The device and inode of the journal's stream (systemd.exec(5)). A child whose standard error leads elsewhere
    // inherits the variable as well.
    return String(cString: stream) == "\(status.st_dev):\(status.st_ino)" ? .journal : .other
  }()

  /// The text as it is written to this reader: with the priority in front of each line if that is understood.
  func text(_ text: String, _ priority: LogPriority) -> String {
    guard self == .journal else { return text }
    return text.split(at: "\n", omittingEmptySubsequences: false)
      .map { "<\(priority.rawValue)>\($0)" }.joined(separator: "\n")
  }
}

/// A priority of syslog(3), as the journal of systemd understands it.
enum LogPriority: Int, Sendable {
  case error = 3, warning = 4, info = 6, debug = 7

  init(_ level: Event.Level) {
    switch level {
    case .error: self = .error
    case .warning: self = .warning
    case .info: self = .info
    case .debug: self = .debug
    }
  }
}

/// How far a command is, in a line on standard error, if that is a terminal.
struct ProgressLine {
  /// Milliseconds between two pictures; a command that takes less shows none.
  static let interval: Int64 = 200

  private let isShown = Terminal.isCapable(STDERR_FILENO)
  private let look = Terminal.look(STDERR_FILENO)
  private var region = LiveRegion()
  private var next = Host.current.milliseconds() + interval

  mutating func update(_ line: (_ width: Int, Look) -> StyledLine) {
    guard isShown else { return }
    let now = Host.current.milliseconds()
    guard now >= next, let size = Terminal.size(STDERR_FILENO) else { return }
    next = now + Self.interval
    // The last column stays empty: terminals differ in where the cursor is after a full line.
    Terminal.write(region.draw([line(size.columns - 1, look)], columns: size.columns), to: STDERR_FILENO)
  }

  mutating func update(_ text: @autoclosure () -> String) {
    update { width, look in StyledLine(String(text().prefix(max(0, width))), look) }
  }

  mutating func erase() { region.eraseOnStandardError() }
}

/// The exit statuses of spoolrun(1). Those from 64 on are from sysexits(3).
///
/// A command that throws one of these codes has said why on standard error.
enum ExitStatus: Int32 {
  case success = 0
  case givenUp = 1
  case usage = 64
  case noSpool = 66
  case unavailable = 69
  case cannotCreate = 73
  case inputOutput = 74
  case waiting = 75
  case configuration = 78

  var code: ExitCode { ExitCode(rawValue) }

  /// The same, once it is said why.
  func after(_ message: String) -> any Error {
    Terminal.error(message)
    return code
  }

  /// The end of a program whose arguments are wrong, before a command is known.
  static func exitOfUsage(_ message: String) -> Never {
    Terminal.error(message)
    exit(usage.rawValue)
  }

  /// The worst outcome of a run. From the worst: nothing can be fetched at all, the spool fails, a job was given up, a
  /// job waits.
  init(_ summary: RunSummary, on kind: FileSystemKind) {
    if summary.obstacle != nil {
      self = .unavailable
    } else if let error = summary.spoolError {
      self = ExitStatus(error, on: kind)
    } else if summary.givenUp > 0 {
      self = .givenUp
    } else if summary.waiting > 0 {
      self = .waiting
    } else {
      self = .success
    }
  }

  /// Of a worker: a file system that cannot be reached may be mounted again.
  init(_ error: SpoolError, on kind: FileSystemKind) {
    self = error.isOfLostMount(on: kind) ? .waiting : ExitStatus(error)
  }

  init(_ error: SpoolError) {
    // A failing disk has one status, whichever call finds it first.
    self = [.create, .mkdir].contains(error.call) && error.errno != .ioError ? .cannotCreate : .inputOutput
  }

  /// Does a part of a command, which ends where the spool fails: this says so, and what failed.
  static func reporting<Value>(_ what: @autoclosure () -> String, _ body: () throws -> Value) throws -> Value {
    do { return try body() } catch let error as SpoolError { throw ExitStatus(error).after("\(what()): \(error)") }
  }

  /// Says what is wrong with a command's arguments. A `ValidationError` from outside of `validate()` would come with
  /// the usage of `spoolrun`, not that of the command.
  static func refusal(_ reason: String, by command: String) -> any Error {
    usage.after("\(reason); see `spoolrun \(command) --help`")
  }
}

extension LiveRegion {
  /// Erases what is on standard error, if anything is.
  mutating func eraseOnStandardError() {
    guard !isEmpty, let size = Terminal.size(STDERR_FILENO) else { return }
    Terminal.write(erase(columns: size.columns), to: STDERR_FILENO)
  }
}
