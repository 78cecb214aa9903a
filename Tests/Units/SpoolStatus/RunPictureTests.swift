import Spool
import SpoolStatus
import SpoolWorker
import Testing

@Suite struct RunPictureTests {
  private let look = Look(isColored: false)

  private func progress(
    _ jobs: [(String, UInt64, UInt64?)], waiting: Int = 0, done: Int = 0, failed: Int = 0, retrying: Int = 0
  ) -> WorkerProgress {
    var summary = RunSummary()
    (summary.done, summary.givenUp, summary.waiting) = (done, failed, retrying)
    let running = jobs.enumerated().map { JobProgress(id: UInt64($0), name: FileName($1.0), bytes: $1.1, total: $1.2) }
    return WorkerProgress(running: running, waiting: waiting, summary: summary, gained: jobs.reduce(0) { $0 + $1.1 })
  }

  /// Two looks, a second apart.
  private func picture(_ first: WorkerProgress, _ second: WorkerProgress) -> RunPicture {
    var picture = RunPicture()
    picture.update(first, at: 1000)
    picture.update(second, at: 2000)
    return picture
  }

  @Test func `at 80 columns it shows bar, share, bytes, rate and time left`() {
    let picture = picture(progress([("a.iso", 0, 4 << 20)]), progress([("a.iso", 1 << 20, 4 << 20)], done: 1))
    let lines = picture.lines(width: 79, height: 24, look).map(\.text)
    #expect(lines.count == 2)
    #expect(lines[0].hasPrefix("a.iso       [") && lines[0].hasSuffix("]  25% 1.00M/4.00M 1.00M/s      3s"))
    #expect(lines[1].hasPrefix("1 of 2 jobs [") && lines[1].hasSuffix("]  25% 1.00M/4.00M 1.00M/s      3s"))
  }

  @Test func `the only job has one bar`() {
    let picture = picture(progress([("a.iso", 0, 4 << 20)]), progress([("a.iso", 1 << 20, 4 << 20)]))
    #expect(picture.lines(width: 79, height: 24, look).map { String($0.text.prefix(7)) } == ["a.iso ["])
    #expect(
      self.picture(progress([]), progress([("a", 1, 2)], failed: 1)).lines(width: 79, height: 24, look).count == 2)
  }

  @Test func `what an earlier attempt got is no rate`() {
    func look(_ bytes: UInt64?, gained: UInt64) -> WorkerProgress {
      let job = JobProgress(id: 1, name: FileName("a.iso"), bytes: bytes, total: 48 << 20)
      return WorkerProgress(running: [job], waiting: 0, summary: RunSummary(), gained: gained)
    }
    var picture = picture(look(nil, gained: 0), look(24 << 20, gained: 0))
    picture.update(look(25 << 20, gained: 1 << 20), at: 3000)
    let lines = picture.lines(width: 79, height: 24, self.look).map(\.text)
    #expect(lines[0].hasSuffix("25.0M/48.0M 1.00M/s     23s"), "\(lines)")
    #expect(!picture.sentence.contains("12.") && picture.sentence.contains("K/s"), "\(picture.sentence)")
  }

  @Test func `a job that is tried again beside others counts once`() {
    func look(_ ids: [UInt64: String], retrying: Int) -> WorkerProgress {
      var summary = RunSummary()
      summary.waiting = retrying
      let running = ids.map { JobProgress(id: $0, name: FileName($1), bytes: 1 << 20, total: 2 << 20) }
      return WorkerProgress(running: running, waiting: 0, summary: summary, gained: 0)
    }
    var picture = picture(look([1: "a", 2: "b"], retrying: 0), look([1: "a"], retrying: 1))
    #expect(picture.sentence.hasPrefix("1 of 2 jobs, 1 to retry, 2.00M of 3.00M"), "\(picture.sentence)")
    picture.update(look([1: "a", 3: "b"], retrying: 0), at: 3000)
    #expect(picture.sentence.hasPrefix("0 of 2 jobs, 2.00M of 4.00M"), "\(picture.sentence)")
  }

  @Test(arguments: [1, 7, 20, 33, 39, 40, 51, 52, 67, 68, 79, 120, 199])
  func `no line is wider than the window`(width: Int) {
    let jobs: [(String, UInt64, UInt64?)] = [
      ("日本語のとても長いファイル名前のテストです.tar", 1 << 30, 1 << 50), ("e\u{301}\u{1B}[31m", 5, nil),
      (String(repeating: "n", count: 180), 0, 0),
    ]
    let picture = picture(progress(jobs, waiting: 100_000, failed: 3), progress(jobs, waiting: 100_000, failed: 3))
    let lines = picture.lines(width: width, height: 24, look)
    #expect(lines.count == 4)
    for line in lines {
      #expect(line.width <= width, "\(line.text)")
      #expect(!line.text.contains("\u{1B}"))
    }
    if width >= 39 { for line in lines.dropLast() { #expect(line.text.contains("[") && line.text.contains("]")) } }
  }

  @Test(arguments: [
    (39, "15/346, 3 failed, 12 to retry        0%"), (59, "15 of 346 jobs, 3 failed, 12 to retry    0% "),
    (79, "15/346, 3 failed, 12 to retry ["), (119, "15 of 346 jobs, 3 failed, 12 to retry ["),
    (199, "15 of 346 jobs, 3 failed, 12 to retry ["), (24, "3 failed, 12 to retry, …"), (12, "3 failed, 1…"),
  ])
  func `what went wrong is dropped last`(width: Int, start: String) {
    let jobs: [(String, UInt64, UInt64?)] = [("a.iso", 1 << 29, 1 << 30)]
    let picture = picture(progress(jobs, waiting: 330), progress(jobs, waiting: 330, failed: 3, retrying: 12))
    let line = picture.lines(width: width, height: 24, look).last
    #expect(line?.text.hasPrefix(start) == true, "\(width): \(line?.text ?? "")")
    #expect((line?.width ?? 0) <= width)
  }

  @Test func `what went wrong is in colour`() {
    let jobs: [(String, UInt64, UInt64?)] = [("a", 1, 2)]
    let picture = picture(progress(jobs), progress(jobs, failed: 1, retrying: 1))
    let line = picture.lines(width: 79, height: 24, Look(isColored: true)).last?.text ?? ""
    #expect(line.contains("\u{1B}[31m1 failed\u{1B}[0m, \u{1B}[33m1 to retry\u{1B}[0m"), "\(line)")
  }

  /// With the unknown part the whole can only be more, and the share less.
  @Test func `if the size of a job is unknown, the rest of the others is a bound`() {
    let first: [(String, UInt64, UInt64?)] = [("a", 0, 4 << 20), ("b", 0, nil)]
    let second: [(String, UInt64, UInt64?)] = [("a", 1 << 20, 4 << 20), ("b", 1 << 20, nil)]
    let picture = picture(progress(first), progress(second))
    let lines = picture.lines(width: 79, height: 24, look).map(\.text)
    #expect(lines[2].hasSuffix(" <41% 2.00M>5.00M 2.00M/s     >2s"), "\(lines[2])")
    #expect(picture.sentence == "0 of 2 jobs, 2.00M of more than 5.00M, 2.00M/s, more than 2s left")
    // Nothing is left of what is known.
    let last = progress([("a", 4 << 20, 4 << 20), ("b", 9 << 20, nil)])
    let end = self.picture(progress(first), last).lines(width: 79, height: 24, look).last?.text ?? ""
    #expect(!end.contains("%") && !end.contains(">5") && end.contains("13.0M "), "\(end)")
    // What has not been read yet makes it a guess.
    let guess = self.picture(progress(first, waiting: 1), progress(second, waiting: 1)).lines(
      width: 79, height: 24, look)
    #expect(guess.last?.text.hasSuffix(" 16% 2.00M~12.0M 2.00M/s     ~5s") == true, "\(guess.last?.text ?? "")")
  }

  @Test func `while nothing runs it says what jobs wait for`() {
    var idle = progress([], waiting: 2)
    idle.waits = [.init("gate", "--gate: exit status\u{1B}[2J 7")]
    idle.untilNext = 52
    let lines = picture(idle, idle).lines(width: 79, height: 24, look).map(\.text)
    #expect(lines == ["2 jobs wait: gate: --gate: exit status\\x1b[2J 7", "next attempt in 52s"])
    #expect(picture(idle, idle).lines(width: 10, height: 1, look).map(\.width) == [10])
    #expect(picture(progress([]), progress([])).lines(width: 79, height: 24, look).isEmpty)
  }

  /// A long backlog is not read to its end just to be counted.
  @Test func `while the scan goes on, the number is a least one and nothing is guessed`() {
    var more = progress([("a.iso", 1 << 20, 4 << 20)], waiting: 3000)
    more.moreWait = true
    let lines = picture(more, more).lines(width: 79, height: 24, look).map(\.text)
    #expect(lines[1].hasPrefix("0 of 3001+ jobs"), "\(lines[1])")
    #expect(lines[1].contains("1.00M ") && !lines[1].contains("M/"), "no total: \(lines[1])")
    #expect(picture(more, more).sentence.hasPrefix("0 of 3001+ jobs, 1.00M"))
  }

  @Test func `jobs that have no room are counted`() {
    let jobs = (1...10).map { ("job\($0)", UInt64($0), UInt64?(100)) }
    let picture = picture(progress(jobs), progress(jobs))
    let lines = picture.lines(width: 79, height: 5, look).map(\.text)
    #expect(lines.count == 5)
    #expect(lines[2].hasPrefix("job3 "))
    #expect(lines[3] == "… and 7 more")
    #expect(lines[4].hasPrefix("0 of 10 jobs"))
    #expect(picture.lines(width: 79, height: 1, look).count == 1)
    #expect(picture.lines(width: 79, height: 11, look).count == 11)
    #expect(picture.lines(width: 79, height: 0, look).isEmpty)
  }

  @Test func `what waits is counted in at the mean size, and said to be a guess`() {
    let picture = picture(progress([("a", 0, 1000)], waiting: 3), progress([("a", 500, 1000)], waiting: 3))
    #expect(picture.sentence == "0 of 4 jobs, 500B of about 3.91K, 500B/s, about 7s left")
    #expect(picture.lines(width: 79, height: 5, look)[1].text.hasSuffix(" 12%  500B~3.91K  500B/s     ~7s"))
  }

  @Test func `when all is done it is idle, and the next run counts anew`() {
    var picture = picture(progress([("a", 0, 10)]), progress([], done: 1))
    #expect(picture.isIdle && picture.lines(width: 79, height: 5, look).isEmpty)
    picture.update(progress([("b", 0, 10)], done: 1), at: 9000)
    #expect(picture.sentence.hasPrefix("0 of 1 jobs"))
  }

  @Test func `a size that nobody knows gives a bar that moves`() {
    var picture = RunPicture()
    var bars: Set<String> = []
    for turn in 0..<200 {
      picture.update(progress([("a", UInt64(turn), nil)]), at: Int64(turn) * 200)
      let line = picture.lines(width: 60, height: 5, look)[0]
      #expect(line.width <= 60 && line.text.contains("<=>"))
      bars.insert(String(line.text.prefix { $0 != "]" }))
    }
    #expect(bars.count > 5)
  }
}
