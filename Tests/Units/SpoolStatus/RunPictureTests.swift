import Spool
import SpoolStatus
import SpoolWorker
import Testing

@Suite struct RunPictureTests {
  private let look = Look(isColored: false)

  private func progress(_ jobs: [(String, UInt64, UInt64?)], waiting: Int = 0, done: Int = 0, failed: Int = 0)
    -> WorkerProgress
  {
    var summary = RunSummary()
    (summary.done, summary.givenUp) = (done, failed)
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
    if width >= 39 { for line in lines { #expect(line.text.contains("[") && line.text.contains("]")) } }
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
    #expect(picture.sentence == "0 of 4 jobs, 500B of about 3.91K, 500B/s, 7s left")
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
