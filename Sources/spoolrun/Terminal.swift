internal import Glibc
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

  static func print(_ line: String) { write(line + "\n", to: STDOUT_FILENO) }
  /// Prints what went wrong, or at another priority what a person should know.
  static func error(_ message: String, _ priority: LogPriority = .error) {
    write(LogReader.current.text("spoolrun: \(message)", priority) + "\n", to: STDERR_FILENO)
  }
  static func log(_ line: String) { write(line + "\n", to: STDERR_FILENO) }

  /// - Returns: false if the reader has gone, or writing fails, such as on a full disk. Only the latter is reported,
  ///   once.
  @discardableResult
  static func write(_ text: String, to descriptor: Int32) -> Bool {
    var bytes = Array(text.utf8)[...]
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
}
