internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolWorker

/// Who reads standard error.
enum LogReader: Sendable, Equatable {
  case terminal
  /// The journal of systemd, which reads a priority at the beginning of each line (sd-daemon(3)).
  case journal
  /// A file or a pipe, such as that of cron, which mails all that is written.
  case other

  /// Who reads standard error of this process.
  static let current: LogReader = {
    if isatty(STDERR_FILENO) == 1 { return .terminal }
    var status = stat()
    guard let stream = getenv("JOURNAL_STREAM"), fstat(STDERR_FILENO, &status) == 0 else { return .other }
    return isJournal(String(cString: stream), device: status.st_dev, inode: status.st_ino) ? .journal : .other
  }()

  /// The same; but a terminal gets only what a file would.
  static var currentButTerminal: LogReader { current == .terminal ? .other : current }

  /// Whether the file is the stream of the journal: `JOURNAL_STREAM` is its device and inode (systemd.exec(5)). A child
  /// whose standard error leads elsewhere inherits the variable as well.
  static func isJournal(_ stream: String, device: UInt, inode: UInt) -> Bool { stream == "\(device):\(inode)" }

  /// The text as it is written to this reader: with the priority in front of each line if that is understood.
  func text(_ text: String, _ priority: LogPriority) -> String {
    guard self == .journal else { return text }
    return text.split(at: "\n", omittingEmptySubsequences: false)
      .map { "<\(priority.rawValue)>\($0)" }.joined(separator: "\n")
  }
}

/// A priority of syslog(3), as the journal of systemd understands it.
enum LogPriority: Int, Sendable {
  case error = 3
  case warning = 4
  case info = 6
  case debug = 7

  init(_ level: Event.Level) {
    switch level {
    case .error: self = .error
    case .warning: self = .warning
    case .info: self = .info
    case .debug: self = .debug
    }
  }
}
