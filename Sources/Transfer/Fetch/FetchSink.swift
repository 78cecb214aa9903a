/// Where a fetch delivers. Called on the thread that runs the engine, from within ``TransferEngine/advance()``.
package protocol FetchSink: AnyObject {
  /// Decides on the response: once, before any byte of the body, and also if there is no body. False drops the
  /// connection; the fetch ends with `.refused`.
  func accept(_ response: Response) -> Bool
  /// The next bytes of the body, at most 16 KiB at a time, valid only during the call. False drops the connection;
  /// the fetch ends with `.refused`.
  func append(_ bytes: UnsafeRawBufferPointer) -> Bool
  /// All bytes that the response announced are here. If the end of the message does not follow within a second, the
  /// fetch is `.complete` and its connection is closed: squid 5.7 never ends a 206 that its origin sent in chunks.
  var hasAll: Bool { get }
  /// More bytes would have to wait. The transfer is paused until this is false, and others go on.
  var isFull: Bool { get }
}

extension FetchSink {
  /// Most sinks take all that comes.
  package var isFull: Bool { false }
}
