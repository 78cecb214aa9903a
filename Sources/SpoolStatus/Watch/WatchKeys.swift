package import Spool

/// What keys do in `status --watch`: keys in, actions out. Pure.
package struct WatchKeys: Sendable {
  package enum Action: Sendable, Equatable {
    case quit
    /// Draw everything again, whatever has written to the terminal.
    case redraw
    case perform(Gesture, TableSubject)
    /// Open a page with the job's story.
    case tell(TableSubject)
  }

  package enum Mode: Sendable, Equatable {
    case table
    case filter
    /// Whether to do this, which cannot be undone.
    case question(Gesture, TableSubject)
    /// Lines to read: a story, or the help.
    case page([String])
  }

  package private(set) var mode = Mode.table
  /// The job that gestures are for; nil until a person has chosen one.
  package private(set) var selected: TableSubject?
  /// Only jobs that say this are shown; empty for all.
  package private(set) var filter = ""
  package private(set) var sort = WatchSort.turn
  /// What came of the last key, until the next one, without control characters; and whether something was not done.
  package private(set) var message: (text: String, isProblem: Bool)?
  package private(set) var pageTop = 0
  private var subjects: [TableSubject] = []
  /// The place of the selection, for when its job is gone; nil if another place is as good.
  private var position: Int?
  /// How many lines the list or the page has room for, and how many the page has.
  private var (room, pageLines) = (10, 0)

  package init() {}

  /// Whether a question waits for its answer. Keys that were typed before it was seen are no answer.
  package var asks: Bool { if case .question = mode { true } else { false } }

  // MARK: what the screen says

  /// The table has these lines now. The selection follows its job, and if that is gone, takes the place's next.
  package mutating func show(_ subjects: [TableSubject]) {
    let former = self.subjects
    self.subjects = subjects
    guard let old = selected else { return }
    if !subjects.contains(old) {
      // A worker may have copied it to another file. One of its name that was there before is another job.
      func isNew(_ one: TableSubject) -> Bool {
        !former.contains { $0 == one || one.inode != nil && $0.inode == one.inode }
      }
      selected =
        subjects.first { old.inode != nil && $0.inode == old.inode }
        ?? subjects.first { $0.name == old.name && isNew($0) }
        ?? position.flatMap { subjects.isEmpty ? nil : subjects[min($0, subjects.count - 1)] }
    }
    position = selected.flatMap { subjects.firstIndex(of: $0) }
  }

  package mutating func measure(room: Int, pageLines: Int = 0) {
    (self.room, self.pageLines) = (max(1, room), pageLines)
    pageTop = max(0, min(pageTop, pageLines - self.room))
  }

  package mutating func say(_ text: String, isProblem: Bool = false) { message = (text, isProblem) }

  package mutating func open(page lines: [String]) { (mode, pageTop) = (.page(lines), 0) }

  // MARK: keys

  /// - Returns: nil if only the picture changes.
  package mutating func press(_ key: Key) -> Action? {
    message = nil
    if key == .redraw { return .redraw }
    switch mode {
    case .table: return pressInTable(key)
    case .filter: pressInFilter(key)
    case .page: pressInPage(key)
    case .question(let gesture, let subject):
      mode = .table
      if key == .character("y") || key == .character("Y") { return .perform(gesture, subject) }
      say("nothing is changed")
    }
    return nil
  }

  private mutating func pressInTable(_ key: Key) -> Action? {
    switch key {
    case .up, .character("k"): select(-1)
    case .down, .character("j"): select(1)
    case .pageUp: select(-room)
    case .pageDown, .character(" "): select(room)
    case .home, .character("g"): select(at: 0)
    case .end, .character("G"): select(at: subjects.count - 1)
    case .enter: return chosen().map { .tell($0) }
    case .character("h"): return chosen().map { .perform(.hold, $0) }
    case .character("l"): return chosen().map { .perform(.release, $0) }
    case .character("r"): return chosen().map { .perform(.retry, $0) }
    case .character("p"): return chosen().map { .perform(.high, $0) }
    case .character("c"): if let subject = chosen() { mode = .question(.cancel, subject) }
    case .character("s"): nextSort()
    case .character("/"): mode = .filter
    case .character("?"): open(page: Self.help)
    case .character("q"): return .quit
    case .escape: clear()
    case .redraw, .backspace, .character: break
    }
    return nil
  }

  private mutating func pressInFilter(_ key: Key) {
    switch key {
    case .enter: mode = .table
    case .escape: clear()
    case .backspace: if filter.popLast() == nil { mode = .table } else { position = nil }
    case .character(let character):
      // More than a terminal's line helps nobody.
      if filter.count < 200 { filter.append(character) }
      position = nil
    case .up, .down, .pageUp, .pageDown, .home, .end, .redraw: break
    }
  }

  private mutating func pressInPage(_ key: Key) {
    switch key {
    case .up, .character("k"): scroll(-1)
    case .down, .character("j"): scroll(1)
    case .pageUp: scroll(-room)
    case .pageDown, .character(" "): scroll(room)
    case .home, .character("g"): scroll(-pageLines)
    case .end, .character("G"): scroll(pageLines)
    case .enter, .escape, .character("q"), .character("?"): mode = .table
    case .redraw, .backspace, .character: break
    }
  }

  private mutating func chosen() -> TableSubject? {
    if selected == nil { say("select a job first: j, k or the arrows", isProblem: true) }
    return selected
  }

  private mutating func select(_ step: Int) {
    guard let position else { return select(at: step > 0 ? 0 : subjects.count - 1) }
    select(at: position + step)
  }

  private mutating func select(at index: Int) {
    if subjects.isEmpty { return }
    let index = max(0, min(index, subjects.count - 1))
    (selected, position) = (subjects[index], index)
  }

  private mutating func scroll(_ lines: Int) { pageTop = max(0, min(pageTop + lines, pageLines - room)) }

  private mutating func nextSort() {
    let all = WatchSort.allCases
    sort = all[((all.firstIndex(of: sort) ?? 0) + 1) % all.count]
    say("sorted by \(sort.rawValue)")
  }

  /// Shows all jobs again, or selects none.
  private mutating func clear() {
    mode = .table
    if filter.isEmpty { (selected, position) = (nil, nil) }
    filter = ""
  }

  /// The page that `?` opens, for windows of 40 columns.
  private static let help = [
    "Keys", "",
    "  j, down    select the next job",
    "  k, up      the one before", "  PgDn, PgUp a page further, back",
    "  g, G       the first, the last",
    "  Enter      what has happened to it", "",
    "  h          hold: pause it",
    "  l          release: let it go on",
    "  r          retry it now",
    "  p          prioritise: start it first",
    "  c          cancel: remove it; asks", "",
    "  s          sort within each state",
    "  /          show jobs that say a text",
    "  Esc        show all; select none", "",
    "  Ctrl-L     draw again",
    "  Ctrl-Z     suspend", "  q          quit",
  ]
}

/// A key of a terminal, as far as `status --watch` knows it.
package enum Key: Sendable, Equatable {
  case up, down, pageUp, pageDown, home, end, enter, escape, backspace
  /// Ctrl-L.
  case redraw
  case character(Character)
}

/// Reads keys from what a terminal sends: characters in UTF-8, and the sequences of ECMA-48 and of the VT220 for keys
/// without one. Pure.
package struct KeyReader: Sendable {
  private var bytes: [UInt8] = []

  package init() {}

  /// Whether a sequence has begun: its rest, or ``end()``, says what it is.
  package var isWaiting: Bool { !bytes.isEmpty }

  package mutating func read(_ new: some Sequence<UInt8>) -> [Key] {
    bytes += new
    var keys: [Key] = []
    while !bytes.isEmpty, let (length, key) = next() {
      bytes.removeFirst(length)
      if let key { keys.append(key) }
    }
    return keys
  }

  /// No rest has come: what begins like a sequence was the key Escape.
  package mutating func end() -> [Key] {
    defer { bytes = [] }
    return bytes.first == 0x1B ? [.escape] : []
  }

  /// The next key and the number of its bytes; no key for a sequence that is not known.
  /// - Returns: nil if its end has not come.
  private func next() -> (length: Int, key: Key?)? {
    switch bytes[0] {
    case 0x1B: return sequence()
    case 0x0A, 0x0D: return (1, .enter)
    case 0x08, 0x7F: return (1, .backspace)
    case 0x0C: return (1, .redraw)
    case 0..<0x20: return (1, nil)
    default: return character()
    }
  }

  private func character() -> (length: Int, key: Key?)? {
    let length =
      switch bytes[0] {
      case 0xC2...0xDF: 2
      case 0xE0...0xEF: 3
      case 0xF0...0xF4: 4
      default: 1
      }
    if bytes.count < length { return nil }
    guard let text = String(validating: bytes.prefix(length), as: UTF8.self), let character = text.first else {
      return (1, nil)
    }
    return (length, .character(character))
  }

  private func sequence() -> (length: Int, key: Key?)? {
    if bytes.count < 2 { return nil }
    switch bytes[1] {
    // SS3, which keypads in application mode send.
    case UInt8(ascii: "O"): return bytes.count < 3 ? nil : (3, Self.named[bytes[2]])
    // CSI: parameters, and a final byte.
    case UInt8(ascii: "["):
      guard let end = bytes.indices.dropFirst(2).first(where: { !(0x20...0x3F).contains(bytes[$0]) }) else {
        // Nothing sends that many.
        return bytes.count > 32 ? (bytes.count, nil) : nil
      }
      let final = bytes[end]
      let number = Int(String(decoding: bytes[2..<end].prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self))
      let key = final == UInt8(ascii: "~") ? number.flatMap { Self.numbered[$0] } : Self.named[final]
      return (end + 1, key)
    default: return (1, .escape)
    }
  }

  private static let named: [UInt8: Key] = [
    UInt8(ascii: "A"): .up, UInt8(ascii: "B"): .down, UInt8(ascii: "H"): .home, UInt8(ascii: "F"): .end,
  ]
  private static let numbered: [Int: Key] = [1: .home, 4: .end, 5: .pageUp, 6: .pageDown, 7: .home, 8: .end]
}

/// How `status --watch` orders the jobs of each state.
package enum WatchSort: String, CaseIterable, Sendable {
  /// As the worker takes them, and the latest failures first.
  case turn
  case name, size, rate, attempts

  /// Whether `one` is before `other`; equal ones keep their order.
  func precedes(_ one: JobStatus, _ other: JobStatus) -> Bool {
    switch self {
    case .turn: false
    case .name: one.name < other.name
    case .size: (one.total ?? one.bytes ?? 0) > (other.total ?? other.bytes ?? 0)
    case .rate: (one.rate ?? -1) > (other.rate ?? -1)
    case .attempts: (one.attempts ?? 0) > (other.attempts ?? 0)
    }
  }
}
