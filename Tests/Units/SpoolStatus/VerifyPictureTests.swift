import SpoolStatus
import Testing

@Suite struct VerifyPictureTests {
  private func line(_ progress: VerifyPicture.Progress, width: Int = 79) -> String {
    var picture = VerifyPicture()
    var before = progress
    before.read = 0
    picture.update(before, at: 1000)
    picture.update(progress, at: 2000)
    return picture.line(width: width, Look(isColored: false)).text
  }

  @Test func `the size of payloads that were not begun is estimated`() {
    var progress = VerifyPicture.Progress(files: 4)
    (progress.begun, progress.ended, progress.known, progress.read) = (2, 1, 2 << 20, 1 << 20)
    #expect(
      line(progress).hasPrefix("1 of 4 files [") && line(progress).hasSuffix("]  25% 1.00M~4.00M 1.00M/s     ~3s"))
    (progress.begun, progress.ended, progress.bad) = (4, 3, 2)
    #expect(
      line(progress).hasPrefix("3 of 4 files, 2 bad [")
        && line(progress).hasSuffix("  50% 1.00M/2.00M 1.00M/s      1s"))
  }

  @Test(arguments: [1, 7, 20, 39, 52, 68, 120])
  func `no line is wider than the window`(width: Int) {
    for files in [0, 1, 123_456] {
      var progress = VerifyPicture.Progress(files: files)
      progress.bad = files / 2
      var picture = VerifyPicture()
      picture.update(progress, at: 0)
      #expect(picture.line(width: width, Look(isColored: false)).width <= width)
    }
  }
}
