internal import Spool

/// The numbers of one attempt, for its records and for progress reports.
final class AttemptAccount {
  /// Counted from 1 since the job last was in `new/`; 0 before it is known.
  var number = 0
  let began = Timestamp.now()
  /// From the begin of the first attempt to the receipt.
  var seconds: Int64 = 0
  /// Bytes received over the network, needed or not.
  var fetched: UInt64 = 0
  /// Data of a mirror was set aside because it was not what the job declares.
  var hasSetAside = false
  var connectivity = Connectivity.unknown
  /// The length of the data when the attempt opened it, and when it closed it.
  var lengthAtStart: UInt64 = 0
  var lengthAtEnd: UInt64 = 0
}
