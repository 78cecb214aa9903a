internal import Spool
internal import SystemPackage

extension SnapshotReader {
  /// The workers that have a file in `workers/`; nil if this user may not read it.
  func workers(of spool: Spool, now: Timestamp) throws(SpoolError) -> [WorkerStatus]? {
    do throws(SpoolError) {
      return try WorkerFiles(spool).all().map { worker in
        WorkerStatus(
          name: escaped(worker.owner.text), isAlive: spool.isAlive(worker.owner, beat: worker.beat, now: now),
          beat: Timestamp(seconds: worker.beat), report: worker.report)
      }
    } catch  where error.errno == .permissionDenied {
      return nil
    }
  }
}
