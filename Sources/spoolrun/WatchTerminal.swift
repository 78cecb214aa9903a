internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SystemPackage

/// The terminal of `status --watch`: a screen of its own, and keys as they are pressed.
final class WatchTerminal {
  enum Event {
    /// Quit: a signal to end, or the terminal is gone.
    case stop
    case bytes([UInt8])
    /// The window has another size, or the process goes on after it was suspended.
    case redraw
    case timeout
  }

  private let stops: Int32
  private let changes: Int32
  /// The terminal's settings before; nil if it gives no keys.
  private let saved: termios?

  /// Whether standard input is a terminal that gives keys.
  static var hasKeys: Bool { isatty(STDIN_FILENO) == 1 && Terminal.isCapable(STDOUT_FILENO) }

  /// - Throws: ``SpoolError`` if there are no descriptors for signals.
  init() throws(SpoolError) {
    stops = spoolrun_stop_signals()
    guard stops >= 0 else { throw SpoolError(call: .open, path: "signalfd", errno: Errno(rawValue: errno)) }
    changes = spoolrun_terminal_signals()
    guard changes >= 0 else { throw SpoolError(call: .open, path: "signalfd", errno: Errno(rawValue: errno)) }
    var settings = termios()
    saved = Self.hasKeys && tcgetattr(STDIN_FILENO, &settings) == 0 ? settings : nil
  }

  // MARK: the screen

  /// Switches to the other screen (xterm's 1049), so that nothing is left on the first one; and keys come at once,
  /// and are not echoed.
  func enter() {
    if var settings = saved {
      let output = settings.c_oflag
      cfmakeraw(&settings)
      settings.c_oflag = output
      // Ctrl-C and Ctrl-Z are still signals.
      settings.c_lflag |= tcflag_t(ISIG)
      tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
    }
    Terminal.write("\u{1B}[?1049h\u{1B}[?25l\u{1B}[H\u{1B}[J", to: STDOUT_FILENO)
  }

  /// Puts everything back.
  func leave() {
    // A terminal that has one screen only is cleared.
    Terminal.write("\u{1B}[H\u{1B}[J\u{1B}[?25h\u{1B}[?1049l", to: STDOUT_FILENO)
    if var saved { tcsetattr(STDIN_FILENO, TCSADRAIN, &saved) }
  }

  /// - Parameter isNew: whether the screen may show something else than the last picture.
  /// - Returns: false if the terminal is gone.
  func draw(_ lines: [StyledLine], isNew: Bool) -> Bool {
    let text = lines.map { "\u{1B}[2K\($0.trimmed)" }.joined(separator: "\r\n")
    return Terminal.write((isNew ? "\u{1B}[2J" : "") + "\u{1B}[H\(text)\u{1B}[J", to: STDOUT_FILENO)
  }

  // MARK: what happens

  /// Waits for what happens next.
  func wait(milliseconds: Int64) -> Event {
    var polled = [stops, changes, saved == nil ? -1 : STDIN_FILENO].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    guard poll(&polled, nfds_t(polled.count), Int32(max(0, milliseconds))) > 0 else { return .timeout }
    if polled[0].revents != 0 { return .stop }
    if polled[1].revents != 0 { return change() }
    return keys()
  }

  private func keys() -> Event {
    var buffer = [UInt8](repeating: 0, count: 1024)
    let count = read(STDIN_FILENO, &buffer, buffer.count)
    if count < 0, [EINTR, EAGAIN].contains(errno) { return .timeout }
    return count > 0 ? .bytes(Array(buffer.prefix(count))) : .stop
  }

  private func change() -> Event {
    switch nextSignal() {
    case SIGQUIT: return .stop
    case SIGTSTP:
      leave()
      spoolrun_suspend()
      // SIGCONT, which has ended the suspension, and is answered here.
      while nextSignal() != 0 {}
      enter()
    case SIGCONT:
      // After SIGSTOP, when the shell has put back its own settings, and has written to this screen.
      leave()
      enter()
    default: break
    }
    return .redraw
  }

  /// 0 if there is none.
  private func nextSignal() -> Int32 {
    var info = signalfd_siginfo()
    let size = MemoryLayout<signalfd_siginfo>.size
    return read(changes, &info, size) == size ? Int32(info.ssi_signo) : 0
  }
}
