//! Arrays of nested types, out of data whose parts have offsets.
//!
//! `make_array` counts the offset of a struct twice that lies in the slice of another one, or in a list of a fixed size: it
//! panics, or takes other rows (apache/arrow-rs#7595). The C Data Interface allows such slices. Here each part is sliced as
//! an array, which is right.

use std::sync::Arc;

use arrow_array::{make_array, Array, ArrayRef, FixedSizeListArray, StructArray};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};

/// The array with this data, which has been validated. Numbers and texts are not copied.
pub(crate) fn array_of(data: ArrayData) -> Result<ArrayRef, ArrowError> {
    if data.child_data().is_empty() {
        return Ok(make_array(data));
    }
    let children = data.child_data().iter().cloned().map(array_of).collect::<Result<Vec<_>, _>>()?;
    let (start, rows) = (data.offset(), data.len());
    match data.data_type() {
        DataType::Struct(fields) => {
            let children = children.iter().map(|child| child.slice(start, rows)).collect();
            Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), children, data.nulls().cloned(), rows)?))
        }
        DataType::FixedSizeList(item, size) if *size > 0 => {
            let items = children[0].slice(start * *size as usize, rows * *size as usize);
            Ok(Arc::new(FixedSizeListArray::try_new(item.clone(), *size, items, data.nulls().cloned())?))
        }
        _ => {
            let children = children.iter().map(Array::to_data).collect();
            Ok(make_array(data.into_builder().child_data(children).build()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int64Type;
    use arrow_array::{Int64Array, ListArray};
    use arrow_schema::{Field, Fields};

    fn numbers() -> ArrayRef {
        Arc::new(Int64Array::from((0..12).map(|n| (n % 5 != 0).then_some(n)).collect::<Vec<_>>()))
    }

    fn struct_of(array: &ArrayRef) -> ArrayRef {
        let fields = Fields::from(vec![Field::new("a", array.data_type().clone(), true)]);
        let nulls = (0..array.len()).map(|row| row % 3 != 1).collect::<Vec<_>>();
        Arc::new(StructArray::new(fields, vec![array.clone()], Some(nulls.into())))
    }

    fn pairs_of(array: &ArrayRef) -> ArrayRef {
        Arc::new(FixedSizeListArray::new(Arc::new(Field::new("item", array.data_type().clone(), true)), 2, array.clone(), None))
    }

    /// As pyarrow slices: the parts stay whole, and only the outermost has an offset.
    fn sliced(array: &ArrayRef, start: usize, rows: usize) -> ArrayData {
        let data = array.to_data();
        let nulls = data.nulls().map(|nulls| nulls.inner().sliced());
        let bits = data.into_builder().offset(start).len(rows).nulls(None).null_bit_buffer(nulls);
        bits.build().unwrap()
    }

    #[test]
    fn slices_of_nested_types_are_their_rows() {
        let (one, two) = (struct_of(&numbers()), struct_of(&struct_of(&numbers())));
        for array in [&one, &two, &struct_of(&two), &pairs_of(&one), &pairs_of(&two), &struct_of(&pairs_of(&two))] {
            for start in 0..array.len() {
                for rows in 0..=array.len() - start {
                    let made = array_of(sliced(array, start, rows)).unwrap();
                    assert_eq!(&made, &array.slice(start, rows), "{} {start} {rows}", array.data_type());
                }
            }
        }
    }

    #[test]
    fn parts_of_slices_may_be_slices() {
        let inner = struct_of(&struct_of(&numbers()));
        let fields = Fields::from(vec![Field::new("b", inner.data_type().clone(), true)]);
        for (start, rows) in [(0, 3), (2, 1), (3, 4)] {
            let child = sliced(&inner, 2, 8);
            let outer = ArrayData::builder(DataType::Struct(fields.clone())).offset(start).len(rows).add_child_data(child);
            let made = array_of(outer.build().unwrap()).unwrap();
            let meant = StructArray::new(fields.clone(), vec![inner.slice(2 + start, rows)], None);
            assert_eq!(&made, &(Arc::new(meant) as ArrayRef));
        }
    }

    #[test]
    fn lists_keep_their_items() {
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![Some(3)])]);
        let made = array_of(list.to_data()).unwrap();
        assert_eq!(&made, &(Arc::new(list) as ArrayRef));
    }
}
