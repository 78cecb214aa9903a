internal import Spool
internal import SpoolStatus
internal import SystemPackage

/// Performs a gesture on the job that a person has selected, as the command does.
struct WatchGesture {
  let spool: Spool

  /// - Returns: what came of it, and whether that is a problem.
  func perform(_ gesture: Gesture, _ subject: TableSubject) -> (text: String, isProblem: Bool) {
    func refused(_ reason: String) -> (String, Bool) {
      ("\(gesture.command) \(subject.name.display): this user may look at the spool, not change it (\(reason))", true)
    }
    do throws(SpoolError) {
      if let stranger = try spool.stranger() { return refused(stranger) }
      var outcome = try spool.perform(gesture, subject.name, in: subject.directory)
      // A worker may have moved it since the picture was drawn. In other directories there may be another job of its
      // name.
      if [.new, .urgent, .cur, .partial].contains(subject.directory) {
        for directory in [Directory.cur, .partial] {
          guard case .notFound(nil) = outcome else { break }
          outcome = try spool.perform(gesture, subject.name, in: directory)
        }
      }
      let report = GestureReport(outcome, of: gesture, name: subject.name.bytes)
      return (report.text, report.isProblem)
    } catch {
      guard [.permissionDenied, .notPermitted, .readOnlyFileSystem].contains(error.errno) else {
        return ("\(gesture.command) \(subject.name.display): \(error)", true)
      }
      return refused("\(error)")
    }
  }
}
