internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SystemPackage

/// `status --watch` in a window: shows the spool, refreshed each second, and does what keys say.
struct WatchSession {
  private var series: SnapshotSeries
  private let terminal: WatchTerminal
  private var screen: WatchScreen
  private var reader = KeyReader()
  private var keys = WatchKeys()
  private var snapshot: SpoolSnapshot
  private var isOver = false
  private var hasCancelled = false

  /// Milliseconds between two looks at the spool.
  private static let interval: Int64 = 1000
  /// Milliseconds that the rest of a key's sequence may take.
  private static let sequence: Int64 = 50

  /// - Parameter snapshot: the first.
  init(_ series: SnapshotSeries, _ snapshot: SpoolSnapshot) throws(SpoolError) {
    (self.series, self.snapshot) = (series, snapshot)
    terminal = try WatchTerminal()
    screen = WatchScreen(Terminal.look(STDOUT_FILENO))
  }

  /// Shows the spool until a key or a signal ends it.
  /// - Returns: the numbers, for the person who looks at the first screen again.
  mutating func run() throws(SpoolError) -> [StyledLine] {
    terminal.enter()
    defer { terminal.leave() }
    draw(isNew: true)
    while !isOver {
      var next = Host.current.milliseconds() + Self.interval
      while !isOver {
        let left = next - Host.current.milliseconds()
        if left <= 0 { break }
        if handle(terminal.wait(milliseconds: reader.isWaiting ? min(left, Self.sequence) : left)) { next = 0 }
      }
      if isOver { break }
      guard let next = try series.next() else { break }
      snapshot = next
      draw()
    }
    if hasCancelled { try OwnSpools.removeDone([series.spool]) }
    let width = Terminal.size(STDOUT_FILENO)?.columns ?? 80
    return StatusTable(snapshot, Terminal.look(STDOUT_FILENO), width: width - 1) { _ in 0 }.summary
  }

  /// - Returns: whether the spool has to be read again at once.
  private mutating func handle(_ event: WatchTerminal.Event) -> Bool {
    switch event {
    case .stop: isOver = true
    case .redraw: draw(isNew: true)
    case .timeout: return reader.isWaiting && press(reader.end())
    case .bytes(let bytes): return press(reader.read(bytes))
    }
    return false
  }

  private mutating func press(_ pressed: [Key]) -> Bool {
    var hasChanged = false
    for key in pressed {
      let didAsk = keys.asks
      switch keys.press(key) {
      case nil: break
      case .quit:
        isOver = true
        return false
      case .redraw: draw(isNew: true)
      case .perform(let gesture, let subject):
        let (text, isProblem) = perform(gesture, subject)
        keys.say(text, isProblem: isProblem)
        hasChanged = true
      case .tell(let subject): tell(of: subject)
      }
      keys.show(arranged.subjects)
      // What was typed before the question was seen is no answer.
      if keys.asks, !didAsk { break }
    }
    draw()
    return hasChanged
  }

  /// Performs a gesture on the job that a person has selected, as the command does.
  /// - Returns: what came of it, and whether that is a problem.
  private mutating func perform(_ gesture: Gesture, _ subject: TableSubject) -> (text: String, isProblem: Bool) {
    func refused(_ reason: String) -> (String, Bool) {
      ("\(gesture.command) \(subject.name.display): this user may look at the spool, not change it (\(reason))", true)
    }
    do throws(SpoolError) {
      if let stranger = try series.spool.stranger() { return refused(stranger) }
      // A worker may have moved it since the picture was drawn, and another job may have its name and its place.
      let directory = subject.inode == nil ? subject.directory : nil
      let outcome = try Steering(series.spool).perform(gesture, subject.name, in: directory, inode: subject.inode)
      if case .notFound(nil) = outcome {
        return ("\(gesture.command) \(subject.name.display): it is gone or has changed; nothing is done", true)
      }
      if case .removed = outcome { hasCancelled = true }
      let report = GestureReport(outcome, of: gesture, name: subject.name.bytes)
      return (report.text, report.isProblem)
    } catch {
      guard [.permissionDenied, .notPermitted, .readOnlyFileSystem].contains(error.errno) else {
        return ("\(gesture.command) \(subject.name.display): \(error)", true)
      }
      return refused("\(error)")
    }
  }

  private mutating func tell(of subject: TableSubject) {
    do throws(SpoolError) {
      guard let lines = try JobStoryReader(series.spool).lines(of: subject.name, in: nil) else {
        return keys.say("\(subject.name.display): no such job", isProblem: true)
      }
      keys.open(page: lines)
    } catch {
      keys.say("\(subject.name.display): \(error)", isProblem: true)
    }
  }

  private var arranged: SpoolSnapshot { snapshot.arranged(by: keys.sort, matching: keys.filter) }

  private mutating func draw(isNew: Bool = false) {
    let arranged = arranged
    keys.show(arranged.subjects)
    guard let size = Terminal.size(STDOUT_FILENO),
      terminal.draw(screen.lines(arranged, &keys, columns: size.columns, rows: size.rows), isNew: isNew)
    else {
      isOver = true
      return
    }
  }
}

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

  init() throws(SpoolError) {
    stops = try Terminal.stopSignals()
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

/// One look at the spool after the other, with rates from the growth between them.
struct SnapshotSeries {
  var spool: Spool
  /// The maximum number of jobs of each state to read.
  let limit: Int
  var rates = RateBook()

  /// - Returns: nil if the spool is gone.
  mutating func next() throws(SpoolError) -> SpoolSnapshot? { try spool.unlessGone(look()) }

  private mutating func look() throws(SpoolError) -> SpoolSnapshot {
    // The spool was removed and created again, or replaced.
    if try !spool.isInPlace(), let next = try spool.reopened() { spool = next }
    var snapshot = try SnapshotReader(spool, limit: limit).read()
    rates.apply(to: &snapshot, at: Host.current.milliseconds())
    return snapshot
  }
}
