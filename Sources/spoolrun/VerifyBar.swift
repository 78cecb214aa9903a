internal import Glibc
internal import SpoolStatus

/// The progress bar of `verify`, on standard error.
struct VerifyBar {
  private var picture = VerifyPicture()
  private var region = LiveRegion()
  private let look = Terminal.look(STDERR_FILENO)
  private let progress: VerifyProgress

  /// nil if standard error is no terminal on which the cursor can be moved.
  init?(_ progress: VerifyProgress) {
    guard Terminal.isCapable(STDERR_FILENO) else { return nil }
    self.progress = progress
  }

  mutating func draw() {
    guard let size = Terminal.size(STDERR_FILENO) else { return }
    picture.update(progress.now, at: Terminal.milliseconds())
    // The last column stays empty: terminals differ in where the cursor is after a full line.
    let line = picture.line(width: size.columns - 1, look)
    Terminal.write(region.draw([line], columns: size.columns), to: STDERR_FILENO)
  }

  /// To be called before anything else is printed.
  mutating func erase() { region.eraseOnStandardError() }
}
