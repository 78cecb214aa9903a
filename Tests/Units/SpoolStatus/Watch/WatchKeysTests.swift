import Spool
import SpoolStatus
import Testing

/// What keys do in `status --watch`, without a terminal.
@Suite struct WatchKeysTests {
  private let jobs = ["a", "b", "c"].map { TableSubject(FileName($0), in: .new) }

  private func keys(_ subjects: [TableSubject]? = nil) -> WatchKeys {
    var keys = WatchKeys()
    keys.show(subjects ?? jobs)
    return keys
  }

  @discardableResult private func type(_ text: String, _ keys: inout WatchKeys) -> [WatchKeys.Action] {
    text.compactMap { keys.press(.character($0)) }
  }

  @Test(arguments: [("h", Gesture.hold), ("l", .release), ("r", .retry), ("p", .high)] as [(Character, Gesture)])
  func `a gesture is for the selected job`(key: Character, gesture: Gesture) {
    var keys = keys()
    #expect(keys.press(.character(key)) == nil)
    #expect(keys.message?.isProblem == true)
    type("jj", &keys)
    #expect(keys.message == nil)
    #expect(keys.press(.character(key)) == .perform(gesture, jobs[1]))
  }

  @Test func `cancelling asks, and only y is yes`() {
    for answer in [Key.character("n"), .enter, .escape, .down, .character("q")] {
      var keys = keys()
      type("jc", &keys)
      #expect(keys.asks && keys.mode == .question(.cancel, jobs[0]))
      #expect(keys.press(answer) == nil)
      #expect(!keys.asks && keys.message?.text == "nothing is changed")
    }
    var keys = keys()
    #expect(type("jcy", &keys) == [.perform(.cancel, jobs[0])])
    #expect(type("y", &keys) == [])
  }

  @Test func `a question is for the job that it names, whatever the table shows by then`() {
    var keys = keys()
    type("jc", &keys)
    keys.show(Array(jobs.dropFirst()))
    #expect(type("y", &keys) == [.perform(.cancel, jobs[0])])
  }

  @Test func `the selection moves and stops at the ends`() {
    var keys = keys()
    keys.measure(room: 2)
    for (key, expected) in [
      (Key.down, 0), (.down, 1), (.down, 2), (.down, 2), (.up, 1), (.home, 0), (.up, 0), (.end, 2), (.pageUp, 0),
      (.pageDown, 2), (.character("g"), 0), (.character("G"), 2), (.character("k"), 1), (.character("j"), 2),
    ] {
      #expect(keys.press(key) == nil)
      #expect(keys.selected == jobs[expected], "\(key)")
    }
    var other = self.keys()
    _ = other.press(.up)
    #expect(other.selected == jobs[2])
    var empty = self.keys([])
    for key in [Key.down, .up, .home, .end, .pageDown, .enter] { #expect(empty.press(key) == nil) }
    #expect(empty.selected == nil)
  }

  @Test func `the selection follows its job, and then takes what is in its place`() {
    var keys = keys()
    type("jj", &keys)
    let held = TableSubject(FileName("b"), in: .hold)
    keys.show([held, jobs[0], jobs[2]])
    #expect(keys.selected == held)
    keys.show([jobs[0], jobs[2]])
    #expect(keys.selected == jobs[0])
    keys.show([])
    #expect(keys.selected == nil)
    keys.show(jobs)
    #expect(keys.selected == nil)
  }

  @Test func `of two jobs of one name, the selected one stays`() {
    let other = TableSubject(FileName("a"), in: .failed)
    var keys = keys([other] + jobs)
    type("jj", &keys)
    keys.show(jobs + [other])
    #expect(keys.selected == jobs[0])
  }

  @Test func `the selection follows a file, or its copy, and takes no other job of the name for it`() {
    func subject(_ directory: Directory, _ inode: UInt64) -> TableSubject {
      TableSubject(FileName("a"), in: directory, inode: inode)
    }
    let (waiting, failed, other) = (subject(.new, 1), subject(.failed, 2), TableSubject(FileName("b"), in: .new))
    var keys = keys([waiting, other, failed])
    type("j", &keys)
    keys.show([failed, subject(.hold, 1)])
    #expect(keys.selected == subject(.hold, 1))
    keys.show([failed, subject(.cur, 3)])
    #expect(keys.selected == subject(.cur, 3))
    keys.show([other, subject(.new, 2)])
    #expect(keys.selected == subject(.new, 2), "it is in the place")
    keys = self.keys([waiting, other, failed])
    type("j", &keys)
    keys.show([other, subject(.new, 2)])
    #expect(keys.selected == other)
  }

  @Test func `the filter is typed, kept and cleared`() {
    var keys = keys()
    type("/h", &keys)
    #expect(keys.mode == .filter && keys.filter == "h")
    // Letters that are keys elsewhere are text here.
    #expect(type("cyq?", &keys) == [] && keys.filter == "hcyq?")
    _ = keys.press(.backspace)
    _ = keys.press(.enter)
    #expect(keys.mode == .table && keys.filter == "hcyq")
    _ = keys.press(.escape)
    #expect(keys.filter == "" && keys.mode == .table)
    type("/ab", &keys)
    _ = keys.press(.escape)
    #expect(keys.filter == "" && keys.mode == .table)
    type("/", &keys)
    _ = keys.press(.backspace)
    #expect(keys.mode == .table)
  }

  @Test func `a job that the filter hides is not selected any more`() {
    var keys = keys()
    type("j/b", &keys)
    keys.show([jobs[1]])
    #expect(keys.selected == nil)
    _ = keys.press(.enter)
    #expect(type("h", &keys) == [])
  }

  @Test func `sorting goes around`() {
    var keys = keys()
    let orders = WatchSort.allCases.map { _ in
      type("s", &keys)
      return keys.sort
    }
    #expect(orders == [.name, .size, .rate, .attempts, .turn])
  }

  @Test func `help and stories are pages, and q leaves them first`() {
    var keys = keys()
    type("?", &keys)
    guard case .page(let help) = keys.mode else { return #expect(Bool(false), "\(keys.mode)") }
    for word in ["hold", "release", "retry", "prioritise", "cancel", "sort", "quit"] {
      #expect(help.contains { $0.contains(word) }, "\(word)")
    }
    keys.measure(room: 5, pageLines: 20)
    type("jjj", &keys)
    #expect(keys.pageTop == 3)
    type("G", &keys)
    #expect(keys.pageTop == 15)
    type("jk", &keys)
    #expect(keys.pageTop == 14)
    #expect(type("q", &keys) == [] && keys.mode == .table)
    #expect(type("q", &keys) == [.quit])
    type("j", &keys)
    #expect(keys.press(.enter) == .tell(jobs[0]))
  }

  @Test func `what came of a gesture is shown until the next key`() {
    var keys = keys()
    keys.say("new/a -> hold/a")
    keys.show(jobs)
    #expect(keys.message?.text == "new/a -> hold/a")
    type("j", &keys)
    #expect(keys.message == nil)
    #expect(keys.press(.redraw) == .redraw)
  }
}
