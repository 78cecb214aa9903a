import Spool
import SpoolStatus
import Testing

/// The picture of `status --watch` in windows of all sizes.
@Suite struct WatchScreenTests {
  private let look = Look(isColored: false)
  private let now = Timestamp(seconds: 1_800_000_000)

  private func snapshot(_ count: Int) -> SpoolSnapshot {
    var snapshot = SpoolSnapshot(location: "spool", time: now)
    var failed = JobStatus(FileName("bad\u{1B}[2J"), .failed)
    failed.problem = .init(code: "http-404", reason: "h answered 404: \u{1B}]0;x\u{7}")
    snapshot.jobs = [
      .failed: [failed], .waiting: (1...count).map { JobStatus(FileName("job-\($0)"), .waiting) },
    ]
    snapshot.counts = [.failed: 1, .waiting: count, .done: 7]
    return snapshot
  }

  private func picture(
    _ snapshot: SpoolSnapshot, _ keys: inout WatchKeys, _ screen: inout WatchScreen, _ columns: Int = 80,
    _ rows: Int = 24
  ) -> [String] {
    let arranged = snapshot.arranged(by: keys.sort, matching: keys.filter)
    keys.show(arranged.subjects)
    let lines = screen.lines(arranged, &keys, columns: columns, rows: rows)
    #expect(lines.count <= rows)
    for line in lines {
      #expect(line.width < max(2, columns), "\(columns)x\(rows): \(line.text)")
      #expect(line.text.unicodeScalars.allSatisfy { $0.value >= 0x20 })
    }
    return lines.map(\.trimmed)
  }

  @Test(arguments: [(80, 24), (40, 10), (40, 5), (20, 3), (200, 60), (80, 1), (80, 2), (1, 1), (12, 24)], [1, 5, 500])
  func `the numbers are on the screen in each window, and no line is too long`(size: (Int, Int), count: Int) {
    let snapshot = snapshot(count)
    var (keys, screen) = (WatchKeys(), WatchScreen(look))
    for _ in 0..<min(count + 3, 60) {
      let lines = picture(snapshot, &keys, &screen, size.0, size.1)
      if size.0 >= 40 { #expect(lines[0].hasPrefix("1 failed, \(count) waiting")) }
      _ = keys.press(.down)
    }
  }

  /// A job that runs at this rate, at a time.
  private func running(_ rate: Double, at second: Int64, name: String = "a.iso") -> SpoolSnapshot {
    var snapshot = SpoolSnapshot(location: "spool", time: now + second)
    var job = JobStatus(FileName(name), .running)
    (job.bytes, job.total, job.rate) = (UInt64(second) << 20, 4 << 20, rate)
    (job.attempts, job.attemptLimit) = (1, 12)
    (snapshot.jobs, snapshot.counts) = ([.running: [job]], [.running: 1])
    return snapshot
  }

  @Test func `what runs has a bar, and the rate a curve`() throws {
    var (keys, screen) = (WatchKeys(), WatchScreen(Look(isColored: false, isUnicode: true)))
    var lines: [String] = []
    for (second, rate) in [0.0, 1e6, 2e6, 8e6].enumerated() {
      lines = picture(running(rate, at: Int64(second)), &keys, &screen)
      // Drawn again, as after a key, it is one time.
      lines = picture(running(rate, at: Int64(second)), &keys, &screen)
    }
    #expect(lines.contains { $0.contains("a.iso") && $0.contains("[=======   ]") && $0.contains("75%") }, "\(lines)")
    #expect(lines.contains("up to 7.63M/s:  ▁▂█"), "\(lines)")
    let low = picture(running(8e6, at: 4), &keys, &screen, 24, 6)
    #expect(!low.contains { $0.contains("up to") } && low.contains { $0.contains("a.iso") }, "\(low)")
    let long = picture(running(8e6, at: 3, name: "debian-13-amd64.iso"), &keys, &screen, 24, 6)
    #expect(long.contains("  debian-…d64.iso   75%"), "\(long)")
    let wide = picture(running(8e6, at: 3), &keys, &screen, 200, 24)
    #expect(wide.contains { $0.contains("[" + String(repeating: "=", count: 28) + "          ]") }, "\(wide)")
    for columns in [24, 40, 79, 100, 200] { _ = picture(running(8e6, at: 5), &keys, &screen, columns, 24) }
  }

  @Test(arguments: [(80, 24), (40, 10), (40, 6)])
  func `the selected job is on the screen, wherever it is`(size: (Int, Int)) throws {
    let snapshot = snapshot(500)
    var (keys, screen) = (WatchKeys(), WatchScreen(look))
    for key in [Key.down, .down, .pageDown, .end, .up, .pageUp, .home, .down, .end] {
      _ = picture(snapshot, &keys, &screen, size.0, size.1)
      _ = keys.press(key)
      let lines = picture(snapshot, &keys, &screen, size.0, size.1)
      let name = try #require(keys.selected?.name.display)
      #expect(
        lines.filter { $0.hasPrefix("> ") }.count == 1 && lines.contains { $0.hasPrefix("> \(name)") }, "\(lines)")
    }
  }

  @Test func `one step scrolls by one line`() {
    let snapshot = snapshot(500)
    var (keys, screen) = (WatchKeys(), WatchScreen(look))
    _ = picture(snapshot, &keys, &screen)
    var marks: [Int] = []
    for _ in 0..<40 {
      _ = keys.press(.down)
      marks.append(picture(snapshot, &keys, &screen).firstIndex { $0.hasPrefix(">") } ?? -1)
    }
    // It goes down to the last line of the list, and the list moves then.
    #expect(marks == marks.sorted() && marks.last == 22)
  }

  @Test func `the filter shows what says its text`() {
    let snapshot = snapshot(500)
    var (keys, screen) = (WatchKeys(), WatchScreen(look))
    for key in "/JOB-49" { _ = keys.press(.character(key)) }
    var lines = picture(snapshot, &keys, &screen)
    #expect(lines.last == "/JOB-49_")
    #expect(lines[0] == "1 failed, 500 waiting, 7 done")
    #expect(lines.contains("new/: 11 of 500 waiting") && !lines.contains { $0.hasPrefix("failed/") })
    _ = keys.press(.enter)
    #expect(picture(snapshot, &keys, &screen).last?.hasPrefix("/JOB-49: 11 shown  Esc all  ") == true)
    _ = keys.press(.escape)
    for key in "/answered" { _ = keys.press(.character(key)) }
    lines = picture(snapshot, &keys, &screen)
    #expect(lines.contains("failed/: 1 of 1 failed") && !lines.contains { $0.contains("job-") })
  }

  @Test func `sorting keeps the states apart`() {
    var snapshot = snapshot(3)
    for (index, size) in [UInt64(10), 30, 20].enumerated() { snapshot.jobs[.waiting]?[index].total = size }
    let names = snapshot.arranged(by: .size, matching: "").subjects.map(\.name.display)
    #expect(names == ["bad\\x1b[2J", "job-2", "job-3", "job-1"])
    #expect(
      snapshot.arranged(by: .turn, matching: "").subjects.map(\.name.display).dropFirst() == [
        "job-1", "job-2", "job-3",
      ])
  }

  @Test func `the last line names the keys as far as there is room`() {
    let snapshot = snapshot(5)
    var (keys, screen) = (WatchKeys(), WatchScreen(look))
    let wide = picture(snapshot, &keys, &screen).last
    #expect(wide == "h hold  l release  r retry  c cancel  p first  s sort  / filter  ? help  q quit")
    #expect(picture(snapshot, &keys, &screen, 40, 10).last == "h hold  l release  ? help  q quit")
    #expect(picture(snapshot, &keys, &screen, 15, 10).last == "? help  q quit")
  }

  @Test func `a question is whole however long the name is`() {
    var snapshot = SpoolSnapshot(location: "s", time: now)
    snapshot.jobs[.waiting] = [JobStatus(FileName(String(repeating: "n", count: 180)), .waiting)]
    snapshot.counts[.waiting] = 1
    var (keys, screen) = (WatchKeys(), WatchScreen(look))
    _ = picture(snapshot, &keys, &screen)
    _ = keys.press(.down)
    _ = keys.press(.character("c"))
    for columns in [80, 40] {
      let line = picture(snapshot, &keys, &screen, columns, 2).last ?? ""
      #expect(line.hasPrefix("cancel nn") && line.hasSuffix("nn and its data? y/n"), "\(line)")
    }
  }

  @Test func `a page is wrapped and scrolled to its end`() {
    var (keys, screen) = (WatchKeys(), WatchScreen(look))
    keys.open(
      page: (1...30).map { "\($0)" + String(repeating: " word", count: 12) + " " + String(repeating: "x", count: 50) })
    let snapshot = snapshot(1)
    #expect(picture(snapshot, &keys, &screen, 40, 10)[0].hasPrefix("1 word"))
    _ = keys.press(.end)
    let lines = picture(snapshot, &keys, &screen, 40, 10)
    #expect(lines.contains { $0.hasPrefix("30 word") } && lines.last == "j/k scroll  q back")
  }
}
