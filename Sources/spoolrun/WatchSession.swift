internal import Glibc
internal import Spool
internal import SpoolStatus

/// `status --watch` in a window: shows the spool, refreshed each second, and does what keys say.
struct WatchSession {
  private var series: SnapshotSeries
  private let terminal: WatchTerminal
  private var screen: WatchScreen
  private var reader = KeyReader()
  private var keys = WatchKeys()
  private var snapshot: SpoolSnapshot
  private var isOver = false

  /// Milliseconds between two looks at the spool.
  private static let interval: Int64 = 1000
  /// Milliseconds that the rest of a key's sequence may take.
  private static let sequence: Int64 = 50

  /// - Throws: ``SpoolError``.
  init(_ series: SnapshotSeries) throws(SpoolError) {
    self.series = series
    terminal = try WatchTerminal()
    screen = WatchScreen(Terminal.look(STDOUT_FILENO))
    snapshot = try self.series.next()
  }

  /// Shows the spool until a key or a signal ends it.
  /// - Returns: the numbers, for the person who looks at the first screen again.
  /// - Throws: ``SpoolError``.
  mutating func run() throws(SpoolError) -> [StyledLine] {
    terminal.enter()
    defer { terminal.leave() }
    draw(isNew: true)
    while !isOver {
      var next = Terminal.milliseconds() + Self.interval
      while !isOver {
        let left = next - Terminal.milliseconds()
        if left <= 0 { break }
        if handle(terminal.wait(milliseconds: reader.isWaiting ? min(left, Self.sequence) : left)) { next = 0 }
      }
      if isOver { break }
      snapshot = try series.next()
      draw()
    }
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
        let (text, isProblem) = WatchGesture(spool: series.spool).perform(gesture, subject)
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
