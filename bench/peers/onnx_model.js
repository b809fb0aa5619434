// onnx_model.js — writes small ONNX models: a graph of nodes, inputs and outputs
// as protobuf bytes, and no more of the format than that takes.
'use strict';

// Protobuf: a message is a row of fields, each a tag (number, wire type) and a value.
function varint(n) {
  const bytes = [];
  for (let rest = BigInt(n); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
}
const integer = (field, n) => Buffer.concat([varint(field << 3), varint(n)]);
const bytes = (field, data) => Buffer.concat([varint((field << 3) | 2), varint(data.length), data]);
const text = (field, string) => bytes(field, Buffer.from(string));
const message = (field, ...fields) => bytes(field, Buffer.concat(fields));
function float(field, x) {
  const data = Buffer.alloc(4);
  data.writeFloatLE(x);
  return Buffer.concat([varint((field << 3) | 5), data]);
}

// Element types as ONNX numbers them.
const ELEMENT = {float32: 1, int32: 6, float16: 10};

function attribute([name, value]) {
  return Number.isInteger(value) ? message(5, text(1, name), integer(3, value), integer(20, 2))
                                 : message(5, text(1, name), float(2, value), integer(20, 1));
}

// {op, domain, inputs, outputs, attributes}; an absent optional input is ''.
function node({op, domain = '', inputs, outputs, attributes = {}}) {
  return message(1, ...inputs.map(name => text(1, name)), ...outputs.map(name => text(2, name)),
                 text(4, op), ...Object.entries(attributes).map(attribute), text(7, domain));
}

// {name, type, dims} as a field of the graph.
function value(field, {name, type, dims}) {
  const shape = message(2, ...dims.map(n => message(1, integer(1, n))));
  return message(field, text(1, name), message(2, message(1, integer(1, ELEMENT[type]), shape)));
}

// A model in format 10 with the standard operators of version 23 and ONNX
// Runtime's own.
function model({nodes, inputs, outputs}) {
  const opset = (domain, version) => message(8, text(1, domain), integer(2, version));
  return Buffer.concat([
    integer(1, 10),
    message(7, ...nodes.map(node), text(2, 'attention'), ...inputs.map(v => value(11, v)),
            ...outputs.map(v => value(12, v))),
    opset('', 23), opset('com.microsoft', 1)]);
}

module.exports = {model};
