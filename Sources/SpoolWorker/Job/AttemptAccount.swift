internal import Spool

/// The numbers of one attempt, for its records and for progress reports.
final class AttemptAccount {
  /// Counted from 1 since the job last was in `new/`; 0 before it is known.
  var number = 0
  let began = Timestamp.now()
  private let beganAt = LoopExecutor.milliseconds()
  /// From the begin of the first attempt to the receipt.
  private(set) var milliseconds: Int64 = 0
  var seconds: Int64 { milliseconds / 1000 }
  /// Bytes received over the network, needed or not.
  var fetched: UInt64 = 0
  /// The same in all attempts, for the receipt.
  var fetchedInAll: UInt64 = 0
  /// What the transfer brought, and how many milliseconds it took; nil if there was none.
  var transfer: (bytes: UInt64, milliseconds: Int64)?
  /// Data of a mirror was set aside because it was not what the job declares.
  var hasSetAside = false
  var connectivity = Connectivity.unknown
  /// The length of the data when the attempt opened it, and when it closed it.
  var lengthAtStart: UInt64 = 0
  var lengthAtEnd: UInt64 = 0

  /// Takes the time until the receipt.
  /// - Parameter first: when the first attempt began, in whole seconds; nil if this one is the first.
  func end(_ receipt: Timestamp, since first: Timestamp?) {
    milliseconds = max(0, first.map { (receipt.seconds - $0.seconds) * 1000 } ?? LoopExecutor.milliseconds() - beganAt)
  }

  /// Bytes per second of the transfer; nil if it brought nothing.
  var rate: UInt64? {
    guard let transfer, transfer.bytes > 0 else { return nil }
    return UInt64(min(Double(transfer.bytes) / Double(max(1, transfer.milliseconds)) * 1000, 1e18))
  }
}
